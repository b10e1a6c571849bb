// Run an exported graph in ONNX Runtime Web: node onnx_runtime_web.mjs RUNTIME GRAPH PIXELS SIDE, JSON to standard output.
// RUNTIME is the folder of the package onnxruntime-web; PIXELS a file of uint8 RGB squares of SIDE pixels.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [runtime, graph, pixels, side] = process.argv.slice(2);
const ort = createRequire(resolve(runtime, "package.json"))("onnxruntime-web");
ort.env.wasm.numThreads = 1;

const session = await ort.InferenceSession.create(new Uint8Array(await readFile(graph)));
const bytes = new Uint8Array(await readFile(pixels));
const shape = [bytes.length / (3 * side * side), Number(side), Number(side), 3];
const { probabilities, label } = await session.run({ pixels: new ort.Tensor("uint8", bytes, shape) });
process.stdout.write(JSON.stringify({ probabilities: [...probabilities.data], labels: [...label.data] }));
