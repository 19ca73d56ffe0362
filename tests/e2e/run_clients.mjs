// node run_clients.mjs TRIAX MODEL [PART OF A NAME]: clients.mjs against a server of its own, which asks for a key.
import { spawn } from "node:child_process";
import { Server } from "./server.mjs";

const [binary, model, only = ""] = process.argv.slice(2);
const server = await Server.start(binary, model, ["--api-key", "test-key"]);
const child = spawn(process.execPath, ["clients.mjs", server.base, only],
  { stdio: "inherit", env: { ...process.env, TRIAX_API_KEY: "test-key" } });
process.exitCode = await new Promise((done) => child.once("exit", (code) => done(code ?? 1)));
await server.stop();
