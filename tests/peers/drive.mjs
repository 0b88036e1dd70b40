// What both TypeScript drivers share: reads the job, plays its steps, prints one JSON line each.
const say = (line) => console.log(JSON.stringify(line));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export async function drive(sdk) {
  const job = JSON.parse(process.argv[2]);
  const seen = { progress: [], logs: 0, sampling: 0, elicitation: 0, roots: 0 };
  try {
    const { client, version } = await sdk.connect(
      job,
      { name: "portcullis-peer", version: "1.0.0" },
      { capabilities: { sampling: {}, elicitation: {}, roots: {} } },
      transport(sdk, job),
      handlers(job, seen),
    );
    say({ do: "connect", version });
    for (const step of job.steps) {
      try {
        say({ do: step.do, result: await play(sdk, client, step, seen) });
      } catch (error) {
        say({ do: step.do, error: { code: error.code ?? error.name, message: error.message } });
      }
    }
    await client.close();
    say({ do: "seen", ...seen });
    process.exit(0);
  } catch (error) {
    say({ do: "broken", error: error.stack });
    process.exit(1);
  }
}

function transport(sdk, job) {
  if (job.url) {
    const headers = job.token ? { authorization: `Bearer ${job.token}` } : {};
    return new sdk.StreamableHTTPClientTransport(new URL(job.url), { requestInit: { headers } });
  }
  const [command, ...args] = job.command;
  return new sdk.StdioClientTransport({ command, args, env: job.env, cwd: job.cwd, stderr: "inherit" });
}

function handlers(job, seen) {
  return {
    sample: async () => {
      seen.sampling += 1;
      return { role: "assistant", model: "peer", content: { type: "text", text: "sampled by the peer" } };
    },
    elicit: async () => {
      seen.elicitation += 1;
      return { action: "accept", content: { name: "Peer" } };
    },
    roots: async () => {
      seen.roots += 1;
      return { roots: [{ uri: job.root ?? "file:///tmp", name: "root" }] };
    },
    log: () => {
      seen.logs += 1;
    },
  };
}

async function play(sdk, client, step, seen) {
  switch (step.do) {
    case "list":
      return client.listTools();
    case "call":
      return call(sdk, client, step, seen);
    case "together":
      return Promise.all(step.calls.map((each) => call(sdk, client, each, seen)));
    case "read":
      return client.readResource({ uri: step.uri });
    case "level":
      return client.setLoggingLevel(step.level);
    case "wait":
      return sleep(step.ms).then(() => ({}));
    default:
      throw new Error(`unknown step ${step.do}`);
  }
}

async function call(sdk, client, step, seen) {
  const options = {};
  if (step.timeout_ms) options.timeout = step.timeout_ms;
  if (step.progress) {
    options.resetTimeoutOnProgress = true;
    options.onprogress = ({ progress, message }) => {
      seen.progress.push(progress);
      say({ do: "progress", progress, message });
    };
  }
  if (step.cancel_after_ms === undefined) {
    return sdk.callTool(client, { name: step.tool, arguments: step.arguments }, options);
  }
  const abort = new AbortController();
  setTimeout(() => abort.abort("the user changed their mind"), step.cancel_after_ms);
  try {
    return await sdk.callTool(client, { name: step.tool, arguments: step.arguments }, { ...options, signal: abort.signal });
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    await sleep(500); // the cancellation is sent in the background
    return { cancelled: true };
  }
}
