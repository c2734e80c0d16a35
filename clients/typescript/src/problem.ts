/** The base of all errors of this package. */
export class StentorError extends Error {
  override name = "StentorError";
}

/** There was no answer. Whether the server did what was asked is not known, unless `wasSent` is false. */
export class ConnectionFailed extends StentorError {
  override name = "ConnectionFailed";

  constructor(message: string, readonly wasSent: boolean, options?: ErrorOptions) {
    super(message, options);
  }
}

/** A refusal by the server (RFC 9457). */
export class Problem extends StentorError {
  override name = "Problem";
  /** Stable word for programs (docs/errors.md); `unknown` when something else than the server answered. */
  readonly code: string;
  /** Why, for a person. */
  readonly detail: string;
  /** Path of the offending field. */
  readonly field: string | undefined;
  /** What to do about it. */
  readonly hint: string | undefined;
  /** The request, as in the server's log. */
  readonly requestId: string | undefined;

  constructor(
    /** Status of HTTP. */
    readonly status: number,
    body: Record<string, unknown>,
    /** How long to wait before the next try, when the server says so. */
    readonly retryAfterSeconds: number | undefined,
  ) {
    const text = (name: string): string | undefined => {
      const value = body[name];
      return typeof value === "string" ? value : undefined;
    };
    const [code, detail, field] = [text("code") ?? "unknown", text("detail") ?? `status ${status}`, text("field")];
    super(`${code}${field === undefined ? "" : ` at ${field}`}: ${detail}`);
    this.code = code;
    this.detail = detail;
    this.field = field;
    this.hint = text("hint");
    this.requestId = text("request_id");
  }
}
