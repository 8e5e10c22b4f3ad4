// Names between camelCase and snake_case, through whole documents. What users named themselves
// stays as it is: the parameters of a query, its rows and its columns.

const VERBATIM = new Set(["params", "rows", "columns"]);

export function toSnake(document: unknown): unknown {
  return renamed(document, (name) => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`));
}

export function toCamel(document: unknown): unknown {
  return renamed(document, (name) => name.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase()));
}

function renamed(document: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(document)) {
    return document.map((member) => renamed(member, rename));
  }
  if (document === null || typeof document !== "object") {
    return document;
  }
  const members = Object.entries(document).map(([name, value]) => [
    rename(name),
    VERBATIM.has(name) ? value : renamed(value, rename),
  ]);
  return Object.fromEntries(members);
}
