// One request, the way generated clients make it: the operation says where its parts go, the answer
// is read by its Content-Type, and a refusal is returned in its place unless it is to be thrown.

export interface ClientConfig {
  baseUrl: string;
  token?: string;
  fetch?: typeof fetch;
}

export interface Client {
  baseUrl: string;
  headers: Record<string, string>;
  fetch: typeof fetch;
}

export interface Operation {
  method: "GET" | "POST" | "DELETE";
  url: string;
}

export interface Parts {
  body?: unknown;
  path?: Record<string, string>;
  query?: Record<string, unknown>;
}

export interface Options {
  client: Client;
  throwOnError?: boolean;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface Result<Data, Failure> {
  data?: Data;
  error?: Failure;
  response: Response;
}

export function createOmnigraphClient(config: ClientConfig): Client {
  return {
    baseUrl: config.baseUrl,
    headers: config.token === undefined ? {} : { Authorization: `Bearer ${config.token}` },
    fetch: config.fetch ?? globalThis.fetch,
  };
}

export async function request<Data, Failure>(
  operation: Operation,
  options: Options & Parts,
): Promise<Result<Data, Failure>> {
  const { client } = options;
  const headers = new Headers({ ...client.headers, ...options.headers });
  const init: RequestInit = { method: operation.method, headers, signal: options.signal };
  if (options.body !== undefined) {
    headers.set("Content-Type", "application/json");
    init.body = JSON.stringify(options.body);
  }
  const response = await client.fetch(urlOf(client.baseUrl, operation.url, options), init);
  if (response.ok) {
    return { data: (await parsed(response)) as Data, response };
  }
  const error = (await refusal(response)) as Failure;
  if (options.throwOnError === true) {
    throw error;
  }
  return { error, response };
}

export function urlOf(baseUrl: string, template: string, parts: Parts): string {
  const path = template.replace(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(String(parts.path?.[name])),
  );
  const pairs = Object.entries(parts.query ?? {})
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  const search = pairs.length > 0 ? `?${pairs.join("&")}` : "";
  return `${baseUrl.replace(/\/+$/, "")}${path}${search}`;
}

async function parsed(response: Response): Promise<unknown> {
  if (response.status === 204 || response.headers.get("Content-Length") === "0") {
    return {};
  }
  const type = response.headers.get("Content-Type")?.split(";")[0]?.trim();
  if (type === undefined) {
    return response.body;
  }
  if (type === "application/json" || type.endsWith("+json")) {
    return response.json();
  }
  return type.startsWith("text/") ? response.text() : response.blob();
}

async function refusal(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
