// Reads exchanges with Azure, one line of JSON each, and says what Microsoft's validator `oav` does not find in
// Microsoft's specification of that operation in that API version: a member or a status that is not in it, a value of
// another type, something required that is missing. It ends with 1 if there is anything.
//
//     PACKAGES=FOLDER node check.mjs [SPECIFICATION.json ...] < exchanges
//
// PACKAGES is where package-lock.json was installed.
// Specifications that are named are looked at beside those of specs.mjs.

import { createRequire } from "node:module";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { specifications } from "./specs.mjs";

const require = createRequire(join(process.env.PACKAGES, "package.json"));
const { LiveValidator } = require("oav");

// What is asked of other services than those whose specifications are looked at, and where an operation says how far it
// is, which no specification names.
const ELSEWHERE = new Set([
  "GalleryToken", "InstanceToken", "NodeBootstrapping", "Operation", "Other", "Price", "Provider", "ResourceGraph",
  "ResourceGroup", "Token",
]);

// What oav says and we know better, with the reason.
const READ_ONLY = "READONLY_PROPERTY_NOT_ALLOWED_IN_REQUEST";
const ALLOWED = [
  // The original names its virtual machines and extensions in their bodies, too, and Azure reads over it.
  (what, { kind }, { code, pathsInPayload: [path] }) => what === "request" && code === READ_ONLY
    && ["VirtualMachine", "Extension"].includes(kind) && ["/name", "/type"].includes(path),
  // A machine of AKS that is changed is sent back as it was read, so that nothing of it is lost.
  (what, { kind, headers }, { code }) => what === "request" && code === READ_ONLY && kind === "Machine" && headers["if-match"],
  // AKS does not wrap its errors, whatever its specification says.
  (what, { kind, status }, { code, pathsInPayload: [path] }) => what === "answer" && code === "OBJECT_ADDITIONAL_PROPERTIES"
    && ["Machine", "DeleteMachines", "AgentPool", "ManagedCluster", "NodeImageVersion"].includes(kind) && status >= 400
    && /^\/(code|message|details|subcode)$/.test(path),
];

async function main() {
  const folder = await mkdtemp(join(tmpdir(), "azure-oav-"));
  try {
    const documents = await specifications(require);
    const swaggerPaths = [];
    for (const [number, document] of documents.entries()) {
      const path = join(folder, `${number}.json`);
      await writeFile(path, JSON.stringify(document));
      swaggerPaths.push(path);
    }
    for (const [number, path] of process.argv.slice(2).entries()) {
      const copy = join(folder, `given-${number}.json`);
      await copyFile(path, copy);
      swaggerPaths.push(copy);
    }
    const complaints = [];
    const log = (message, level) => level === "error" && complaints.push(message);
    const validator = new LiveValidator({ directory: folder, swaggerPaths, loadValidatorInBackground: false }, log);
    await validator.initialize();
    // A specification that cannot be used would let everything pass.
    if (complaints.length > 0) throw new Error(complaints.join("\n"));
    process.exitCode = await look(validator);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function look(validator) {
  const problems = new Map();
  let looked = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "") continue;
    const exchange = JSON.parse(line);
    // A connection that broke says nothing.
    if (ELSEWHERE.has(exchange.kind) || exchange.status === null) continue;
    looked += 1;
    for (const problem of await judge(validator, exchange)) problems.set(problem, (problems.get(problem) ?? 0) + 1);
  }
  for (const [problem, times] of [...problems].sort()) console.log(`${problem} (${times} times)`);
  console.log(`${looked} exchanges looked at`);
  return problems.size > 0 ? 1 : 0;
}

async function judge(validator, exchange) {
  const { method, path, query, headers, body, status, answer, answerHeaders } = exchange;
  const url = `${path}?${new URLSearchParams(query)}`;
  const liveRequest = { url, method, headers: { "content-type": "application/json", ...headers }, query, body: body ?? undefined };
  const liveResponse = { statusCode: String(status), headers: answerHeaders, body: answer ?? undefined };
  const result = await validator.validateLiveRequestResponse({ liveRequest, liveResponse });
  const place = `${method} ${exchange.kind}`;
  const problems = [];
  for (const [what, half] of [["request", result.requestValidationResult], ["answer", result.responseValidationResult]]) {
    const failure = half.runtimeException ?? result.runtimeException;
    if (failure) problems.push(`${place}, ${status}, ${what}: ${failure.message}`);
    for (const each of half.errors) {
      if (ALLOWED.some((allowed) => allowed(what, exchange, each))) continue;
      problems.push(`${place}, ${status}, ${what}: ${each.code} ${each.pathsInPayload.join(" ")}: ${each.message}`);
    }
  }
  return problems;
}

await main();
