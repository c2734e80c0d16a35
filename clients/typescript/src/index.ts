/** Client of Stentor, a self-hosted messaging server. */
import { Operations } from "./operations.js";
import { Transport, type ClientOptions } from "./runtime.js";

export type * from "./types.js";
export type { CallOptions, ClientOptions, KeyedOptions } from "./runtime.js";
export { ConnectionFailed, Problem, StentorError } from "./problem.js";
export type { Retries } from "./retries.js";
export { seal, type Sealed } from "./seal.js";

/** Calls a server: one method for each operation, by noun. */
export class Client extends Operations {
  constructor(options: ClientOptions) {
    super(new Transport(options));
  }
}
