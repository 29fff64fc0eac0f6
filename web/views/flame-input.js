// SPDX-License-Identifier: Apache-2.0
/** Pointer, touch, wheel and keys of the flame graph. */

import { windowScaled } from "../core/layout.js";
import { rowNeighbour, widestChild } from "../core/tree.js";

/** @typedef {import("./flame-graph.js").FlameGraph} FlameGraph */

const TOOLTIP_AFTER_MS = 80;
const DRAG_FROM_PX = 5;

/** @param {FlameGraph} graph */
export function listenToPointer(graph) {
  const { canvas } = graph;
  /** Pointers that are down, by id. @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let travelled_px = 0;
  let timer = 0;
  const place = (/** @type {PointerEvent | MouseEvent} */ event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const leave = () => {
    clearTimeout(timer);
    graph.tooltip.hide();
    if (graph.hover >= 0) graph.invalidate();
    graph.hover = -1;
  };
  const hover = (/** @type {PointerEvent} */ event) => {
    const at = place(event);
    const { node, ancestor } = graph.hit(at.x, at.y);
    canvas.classList.toggle("is-over", node >= 0 || ancestor >= 0);
    if (node !== graph.hover) {
      leave();
      graph.hover = node;
      graph.invalidate();
    }
    clearTimeout(timer);
    if (node < 0) return;
    if (graph.tooltip.isShown()) graph.showTooltip(event.clientX);
    else timer = window.setTimeout(() => graph.showTooltip(event.clientX), TOOLTIP_AFTER_MS);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down.set(event.pointerId, place(event));
    travelled_px = down.size > 1 ? DRAG_FROM_PX : 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") hover(event);
      return;
    }
    const now = place(event);
    travelled_px = Math.max(travelled_px, Math.abs(now.x - before.x));
    if (travelled_px < DRAG_FROM_PX) return;
    leave();
    if (!canvas.hasPointerCapture(event.pointerId)) canvas.setPointerCapture(event.pointerId);
    drag(graph, down, event.pointerId, now);
  });
  const lift = (/** @type {PointerEvent} */ event) => {
    const wasDown = down.delete(event.pointerId);
    if (!wasDown || event.type !== "pointerup" || travelled_px >= DRAG_FROM_PX) return;
    const at = place(event);
    press(graph, graph.hit(at.x, at.y));
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", leave);
  graph.scroller.addEventListener("scroll", leave);
  canvas.addEventListener("wheel", (event) => wheel(graph, event, place(event).x), { passive: false });
  graph.map.addEventListener("click", (event) => graph.goToMap(event.offsetX, event.offsetY));
}

/**
 * A press selects a frame and zooms to it; on the frame that fills the view it goes back up.
 * @param {FlameGraph} graph
 * @param {{node: number, ancestor: number}} hit
 */
function press(graph, { node, ancestor }) {
  if (!graph.tree) return;
  if (ancestor >= 0) graph.asked.zoom(ancestor === 0 ? 0 : graph.tree.ancestors[ancestor].id);
  if (node < 0) return;
  graph.select(node);
  if (node !== graph.focus) graph.zoomTo(node);
}

/**
 * One finger moves the view sideways, two bring it nearer.
 * @param {FlameGraph} graph
 * @param {Map<number, {x: number, y: number}>} down
 * @param {number} id
 * @param {{x: number, y: number}} now
 */
function drag(graph, down, id, now) {
  const tree = graph.tree;
  const width_px = graph.scroller.clientWidth;
  const before = /** @type {{x: number, y: number}} */ (down.get(id));
  const other = [...down].find(([each]) => each !== id)?.[1];
  down.set(id, now);
  if (!tree) return;
  const perPixel = (graph.window.end - graph.window.start) / width_px;
  if (!other) {
    const shift = (before.x - now.x) * perPixel;
    graph.window = windowScaled(graph.window, { factor: 1, about: graph.window.start, shift, whole: tree.total[0] });
  } else {
    const factor = Math.max(16, Math.abs(before.x - other.x)) / Math.max(16, Math.abs(now.x - other.x));
    const about = graph.window.start + ((now.x + other.x) / 2) * perPixel;
    graph.window = windowScaled(graph.window, { factor, about, shift: 0, whole: tree.total[0] });
  }
  graph.invalidate();
}

/**
 * Ctrl and wheel (a pinch on a touch pad) zoom about the pointer; sideways or with Shift it moves. Plain wheel scrolls the box.
 * @param {FlameGraph} graph
 * @param {WheelEvent} event
 * @param {number} x_px
 */
function wheel(graph, event, x_px) {
  const tree = graph.tree;
  const isZoom = event.ctrlKey || event.metaKey;
  const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
  if (!tree || (!isZoom && Math.abs(sideways) <= Math.abs(event.shiftKey ? 0 : event.deltaY))) return;
  event.preventDefault();
  const perPixel = (graph.window.end - graph.window.start) / (graph.scroller.clientWidth);
  const about = graph.window.start + x_px * perPixel;
  const factor = isZoom ? Math.exp(Math.max(-40, Math.min(40, event.deltaY)) * 0.01) : 1;
  graph.window = windowScaled(graph.window, { factor, about, shift: isZoom ? 0 : sideways * perPixel, whole: tree.total[0] });
  graph.tooltip.hide();
  graph.invalidate();
}

/** @param {FlameGraph} graph */
export function listenToKeys(graph) {
  graph.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !graph.tree) return;
    const isTaken = walk(graph, event.key) || act(graph, event.key);
    if (isTaken) event.preventDefault();
  });
}

/**
 * Arrows: up to the caller, down to the widest callee, sideways in the row.
 * @param {FlameGraph} graph
 * @param {string} key
 */
function walk(graph, key) {
  const tree = /** @type {import("../core/tree.js").Tree} */ (graph.tree);
  const from = graph.selected;
  const isArrow = key === "ArrowUp" || key === "ArrowDown" || key === "ArrowLeft" || key === "ArrowRight";
  if (!isArrow) return false;
  if (from < 0) {
    graph.select(graph.focus);
    return true;
  }
  const to = walkedTo(tree, from, key);
  if (to >= 0) graph.select(to);
  return true;
}

/**
 * @param {import("../core/tree.js").Tree} tree
 * @param {number} from
 * @param {string} key an arrow
 */
function walkedTo(tree, from, key) {
  if (key === "ArrowUp") return tree.parent[from];
  if (key === "ArrowDown") return widestChild(tree, from);
  return rowNeighbour(tree, from, key === "ArrowRight" ? 1 : -1);
}

/**
 * @param {FlameGraph} graph
 * @param {string} key
 */
function act(graph, key) {
  if (key === "Enter" && graph.selected >= 0) graph.zoomTo(graph.selected);
  else if (key === "Backspace") graph.asked.back();
  else if (key === "Home") graph.asked.zoom(0);
  else if (key === "Escape") graph.select(-1);
  else if (key === "n" || key === "N") graph.selectMatch(key === "n" ? 1 : -1);
  else if (["t", "i", "f", "c", "?"].includes(key)) graph.asked.key(key);
  else return false;
  return true;
}
