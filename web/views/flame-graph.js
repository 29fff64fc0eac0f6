// SPDX-License-Identifier: Apache-2.0
/**
 * The flame graph as a component: a canvas in a box that scrolls, a mini-map above, a legend below, a tooltip, a voice.
 *
 * It is given a tree and shows it; what a reader asks for beyond the tree (another root, all of a trimmed frame) it hands to
 * its owner. Pointer and keys are read in flame-input.js.
 */

import { CODE_KINDS } from "../core/colour.js";
import { frameWords, spokenFrame } from "../core/frame-words.js";
import { ROW_PX, nodeAt, windowBetween } from "../core/layout.js";
import { FUNCTION_TRIMMED, nextMatch, nodeOfId } from "../core/tree.js";
import { flameColours } from "../draw/flame-colours.js";
import { makeFlamePainter } from "../draw/flame-painter.js";
import { MINIMAP_PX, mapRows, paintMinimap, paintMinimapView } from "../draw/minimap.js";
import { isMotionReduced } from "../draw/surface.js";
import { themeShown } from "../state/theme.js";
import { element, fill } from "./dom.js";
import { listenToKeys, listenToPointer } from "./flame-input.js";
import { makeTooltip } from "./tooltip.js";

/**
 * @typedef {import("../core/tree.js").Tree} Tree
 * @typedef {import("../core/layout.js").Span} Span
 * @typedef {{
 *   zoom: (id: number) => void, trimmed: (parentId: number) => void, select: (node: number) => void, back: () => void,
 *   key: (key: string) => void,
 * }} Asked what the owner is asked for; ids are of nodes or ancestors, 0 is the root
 */

/**
 * How frames look and what is said of them.
 * @typedef {{
 *   colours: (theme: "light" | "dark") => import("../draw/flame-colours.js").FlameColours,
 *   words: (tree: any, node: number, viewTotal: number) => import("../core/frame-words.js").FrameWords,
 *   spoken: (tree: any, node: number, viewTotal: number) => string,
 *   markOf: ((tree: any, node: number) => {short: string, long: string}) | null,
 *   kinds: ReadonlyArray<{key: string, label: string}>, legendLabel: string,
 * }} Look trees are those the owner gives to setTree
 */

/** @type {Readonly<Look>} */
const CODE_LOOK = Object.freeze({ colours: flameColours, words: frameWords, spoken: spokenFrame, markOf: null, kinds: CODE_KINDS, legendLabel: "Kinds of code on screen" });

const ZOOM_MS = 120;
const DEEPEST_BOX_ROWS = 38;
const SHALLOWEST_BOX_ROWS = 12;

export class FlameGraph {
  /**
   * @param {Asked} asked
   * @param {AbortSignal} signal aborted when the graph leaves the page
   * @param {Look} [look]
   */
  constructor(asked, signal, look = CODE_LOOK) {
    this.asked = asked;
    this.look = look;
    /** @type {Tree | null} */
    this.tree = null;
    /** @type {Span} */
    this.window = { start: 0, end: 1 };
    this.focus = 0;
    this.hover = -1;
    this.selected = -1;
    this.marked = -1;
    this.rootLabel = "all";
    this.painter = makeFlamePainter();
    /** @type {import("../draw/flame-colours.js").FlameColours | null} */
    this.colours = null;
    /** @type {{tree: Tree, picture: HTMLCanvasElement, rows: number, width_px: number, colours: object} | null} */
    this.whole = null;
    this.frameAsked = 0;
    this.moving = 0;
    this.isPrinting = false;
    const { root, canvas, space, scroller, map, legend, voice } = flameElements(look.legendLabel);
    this.root = root;
    this.canvas = canvas;
    this.space = space;
    this.scroller = scroller;
    this.map = map;
    this.legend = legend;
    this.voice = voice;
    this.tooltip = makeTooltip(root);
    this.listen(signal);
  }

  /** Make what needs no tree, while it is on its way: the first painting comes that much sooner. */
  prepare() {
    this.colours ??= this.look.colours(themeShown());
    this.painter.prepare();
  }

  /** @param {AbortSignal} signal */
  listen(signal) {
    this.scroller.addEventListener("scroll", () => this.invalidate());
    new ResizeObserver(() => this.invalidate()).observe(this.scroller);
    const onTheme = () => {
      this.colours = null;
      this.invalidate();
    };
    document.documentElement.addEventListener("themechange", onTheme, { signal });
    window.addEventListener("beforeprint", () => this.printMode(true), { signal });
    window.addEventListener("afterprint", () => this.printMode(false), { signal });
    listenToPointer(this);
    listenToKeys(this);
  }

  /**
   * Show a tree zoomed to the node with an id. The frame selected stays selected if the tree has it, and scrolling stays.
   * @param {Tree} tree
   * @param {{focusId: number, rootLabel: string, isMinimapKept: boolean}} how
   */
  setTree(tree, { focusId, rootLabel, isMinimapKept }) {
    const old = this.tree;
    const oldSelected = old && this.selected >= 0 ? old.id[this.selected] : -1;
    const focus = Math.max(0, nodeOfId(tree, focusId));
    const isSameRoot = old !== null && old.count > 0 && old.id[0] === tree.id[0];
    const share = isSameRoot && old.total[0] > 0 ? tree.total[0] / old.total[0] : 0;
    const cameFrom = old && !isSameRoot ? nodeOfId(tree, old.id[0]) : -1;
    const wentInto = old && !isSameRoot ? nodeOfId(old, tree.id[0]) : -1;
    const wasFocus = old && old.count > 0 ? old.id[this.focus] : -1;
    cancelAnimationFrame(this.moving);
    this.tree = tree;
    this.rootLabel = rootLabel;
    this.hover = -1;
    this.selected = oldSelected >= 0 ? nodeOfId(tree, oldSelected) : -1;
    this.marked = -1;
    this.focus = focus;
    if (!isMinimapKept) this.whole = null;
    this.fitBox();
    if (cameFrom >= 0) {
      this.window = this.spanOf(cameFrom);
      this.moveTo(this.spanOf(focus));
    } else if (old && wentInto >= 0 && old.total[wentInto] > 0) {
      // The new tree is a frame of the old one: go on from where the movement is, in the new tree's units.
      const scale = tree.total[0] / old.total[wentInto];
      const into = (/** @type {number} */ value) => (value - old.start[wentInto]) * scale;
      this.window = { start: into(this.window.start), end: into(this.window.end) };
      this.moveTo(this.spanOf(focus));
    } else if (isSameRoot && tree.id[focus] === wasFocus) {
      this.window = { start: this.window.start * share, end: this.window.end * share };
    } else {
      this.window = this.spanOf(focus);
    }
    this.invalidate();
  }

  /** @param {number} node @returns {Span} */
  spanOf(node) {
    const tree = /** @type {Tree} */ (this.tree);
    return { start: tree.start[node], end: tree.start[node] + Math.max(tree.total[node], 1) };
  }

  /** Height of the box: as many rows as the tree has, between a few and a screenful. */
  fitBox() {
    if (!this.tree) return;
    const rows = this.tree.depthCount + this.tree.ancestors.length;
    this.space.style.height = `${rows * ROW_PX}px`;
    const shown = this.isPrinting ? rows : Math.min(DEEPEST_BOX_ROWS, Math.max(SHALLOWEST_BOX_ROWS, rows));
    this.scroller.style.height = `${shown * ROW_PX}px`;
  }

  /** @param {boolean} isOn the whole depth is on paper, not only what the box shows */
  printMode(isOn) {
    this.isPrinting = isOn;
    this.colours = null;
    this.fitBox();
    this.paint();
  }

  /** Zoom to a node of the tree, at once on screen; the owner is told, to bring more detail. @param {number} node */
  zoomTo(node) {
    const tree = /** @type {Tree} */ (this.tree);
    if (tree.functionOf[node] === FUNCTION_TRIMMED) {
      this.asked.trimmed(tree.id[tree.parent[node]]);
      return;
    }
    this.showNode(node);
    this.asked.zoom(node === 0 && tree.ancestors.length === 0 ? 0 : tree.id[node]);
  }

  /** Move the view to a node without asking for anything. @param {number} node */
  showNode(node) {
    this.focus = node;
    this.moveTo(this.spanOf(node));
  }

  /** @param {Span} target */
  moveTo(target) {
    cancelAnimationFrame(this.moving);
    this.tooltip.hide();
    const isThere = Math.abs(target.start - this.window.start) + Math.abs(target.end - this.window.end) < (target.end - target.start) * 1e-6;
    if (isMotionReduced() || isThere) {
      this.window = target;
      this.invalidate();
      return;
    }
    const from = this.window;
    const started = performance.now();
    const step = () => {
      const progress = (performance.now() - started) / ZOOM_MS;
      this.window = windowBetween(from, target, progress);
      this.paint();
      if (progress < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }

  /** @param {number} node -1 for none */
  select(node) {
    this.selected = node;
    this.marked = -1;
    const tree = this.tree;
    if (tree && node >= 0) {
      this.bringIntoBox(node);
      this.voice.textContent = this.look.spoken(tree, node, tree.total[this.focus]);
    }
    this.invalidate();
    this.asked.select(node);
  }

  /** Outline every frame of a function; -1 for none. @param {string} name @param {string} binary */
  mark(name, binary) {
    const functions = this.tree?.functions ?? [];
    this.selected = -1;
    this.marked = functions.findIndex((each) => each.name === name && each.binary === binary);
    this.invalidate();
  }

  /** @param {1 | -1} step */
  selectMatch(step) {
    if (!this.tree) return;
    const match = nextMatch(this.tree, this.selected >= 0 ? this.selected : step > 0 ? -1 : 0, step);
    if (match < 0) return;
    const span = this.spanOf(match);
    if (span.end <= this.window.start || span.start >= this.window.end) this.showNode(0);
    this.select(match);
  }

  /** @param {number} node */
  bringIntoBox(node) {
    const tree = /** @type {Tree} */ (this.tree);
    const box = this.scroller;
    const top = (tree.depth[node] + tree.ancestors.length) * ROW_PX;
    if (top < box.scrollTop) box.scrollTop = top - ROW_PX;
    if (top + ROW_PX > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * ROW_PX - box.clientHeight;
  }

  /**
   * What is at a point of the canvas.
   * @param {number} x_px
   * @param {number} y_px
   * @returns {{node: number, ancestor: number}} each -1 when it is not that
   */
  hit(x_px, y_px) {
    const { tree, scroller } = this;
    if (!tree) return { node: -1, ancestor: -1 };
    const row = Math.floor((y_px + scroller.scrollTop) / ROW_PX);
    if (row < tree.ancestors.length) return { node: -1, ancestor: row };
    const value = this.window.start + (x_px / scroller.clientWidth) * (this.window.end - this.window.start);
    return { node: nodeAt(tree, row - tree.ancestors.length, value), ancestor: -1 };
  }

  /** Show the tooltip of the frame under the pointer. @param {number} clientX */
  showTooltip(clientX) {
    const { tree, canvas, scroller, hover } = this;
    if (!tree || hover < 0) return;
    const top_px = canvas.getBoundingClientRect().top + (tree.depth[hover] + tree.ancestors.length) * ROW_PX - scroller.scrollTop;
    this.tooltip.show(this.look.words(tree, hover, tree.total[this.focus]), { x_px: clientX, top_px, bottom_px: top_px + ROW_PX });
  }

  isBeingRead() {
    return this.tooltip.isShown();
  }

  /** Paint soon; many calls make one picture. */
  invalidate() {
    if (this.frameAsked) return;
    this.frameAsked = requestAnimationFrame(() => {
      this.frameAsked = 0;
      this.paint();
    });
  }

  paint() {
    const { tree, canvas, scroller } = this;
    if (!tree || scroller.clientWidth === 0) return;
    const started = performance.now();
    this.colours ??= this.look.colours(this.isPrinting ? "light" : themeShown());
    const { kinds, boxes } = this.painter.paint(canvas, {
      tree,
      window: this.window,
      focus: this.focus,
      hover: this.hover,
      selected: this.selected,
      marked: this.marked,
      scroll_px: scroller.scrollTop,
      width_px: scroller.clientWidth,
      height_px: scroller.clientHeight,
      colours: this.colours,
      rootLabel: this.rootLabel,
      markOf: this.look.markOf,
    });
    this.paintMap(scroller);
    this.showLegend(kinds);
    canvas.dataset.boxes = String(boxes);
    canvas.dataset.paintMs = (performance.now() - started).toFixed(1);
  }

  /** @param {HTMLElement} scroller */
  paintMap(scroller) {
    const { tree, colours, map } = this;
    if (!tree || !colours) return;
    const width_px = scroller.clientWidth;
    if (!this.whole || this.whole.width_px !== width_px || this.whole.colours !== colours) {
      const whole = this.whole?.tree ?? tree;
      this.whole = { tree: whole, picture: paintMinimap(whole, { width_px, colours }), rows: mapRows(whole), width_px, colours };
    }
    const whole = this.whole.tree;
    // The window is in units of the shown tree, whose root may be a frame of the whole one.
    const at = whole === tree ? 0 : nodeOfId(whole, tree.id[0]);
    const scale = at >= 0 ? whole.total[at] / Math.max(1, tree.total[0]) : 1;
    const offset = at >= 0 ? whole.start[at] : 0;
    const rows = this.whole.rows * ROW_PX;
    const shown = {
      start: (offset + this.window.start * scale) / whole.total[0],
      end: (offset + this.window.end * scale) / whole.total[0],
      top: Math.min(0.9, scroller.scrollTop / rows),
      bottom: Math.min(1, (scroller.scrollTop + scroller.clientHeight) / rows),
    };
    paintMinimapView(map, this.whole.picture, shown, { width_px, colours });
  }

  /** Go to a point of the mini-map. @param {number} x_px @param {number} y_px */
  goToMap(x_px, y_px) {
    const { tree, whole } = this;
    if (!tree || !whole) return;
    const row = Math.floor((y_px / MINIMAP_PX) * whole.rows);
    for (let depth = Math.min(row, whole.tree.depthCount - 1); depth >= 0; depth -= 1) {
      const node = nodeAt(whole.tree, depth, (x_px / whole.width_px) * whole.tree.total[0]);
      if (node < 0 || whole.tree.functionOf[node] === FUNCTION_TRIMMED) continue;
      const here = nodeOfId(tree, whole.tree.id[node]);
      if (here >= 0) this.zoomTo(here);
      else this.asked.zoom(depth === 0 ? 0 : whole.tree.id[node]);
      return;
    }
  }

  /** @param {Set<number>} kinds */
  showLegend(kinds) {
    const { legend } = this;
    const key = [...kinds].sort((a, b) => a - b).join();
    if (legend.dataset.kinds === key) return;
    legend.dataset.kinds = key;
    const shown = this.look.kinds.filter((_, at) => kinds.has(at));
    fill(legend, ...shown.map((kind) => element("li", {}, element("span", { class: `swatch is-${kind.key}` }), kind.label)));
  }
}

/** The elements of the component, not yet in the page. @param {string} legendLabel */
function flameElements(legendLabel) {
  const canvas = element("canvas", {
    class: "flame-canvas",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "flame graph",
    "aria-label": "Flame graph. Arrows walk the frames, Enter zooms, Backspace goes back, T shows the table, question mark lists the keys.",
  });
  const space = element("div", { class: "flame-space" }, canvas);
  const scroller = element("div", { class: "flame-scroll", tabindex: "-1" }, space);
  const map = element("canvas", { class: "flame-map", "aria-hidden": "true", title: "The whole graph. Click to go there." });
  const legend = element("ul", { class: "legend", "aria-label": legendLabel });
  const voice = element("p", { class: "visually-hidden", "aria-live": "polite" });
  const root = element("div", { class: "flame" }, map, scroller, legend, voice);
  return { root, canvas, space, scroller, map, legend, voice };
}
