// SPDX-License-Identifier: Apache-2.0
/** Paints the same tree with d3-flame-graph. It may leave out what is under half a pixel, as we do: it is five times faster then. */

import { tellPainted } from "/pages/painted.js";

const { d3, flamegraph } = globalThis;
const data = await (await fetch("/data/tree.json")).json();
d3.select("#chart").datum(data).call(flamegraph().width(2000).minFrameSize(0.5));
tellPainted(document.querySelectorAll("#chart rect").length);
