/** A policy of answers, as docs/emulators.md describes it. */
export type Policy = Record<string, unknown>;

/** An emulator that cannot start, has ended or refuses a request. */
export declare class EmulatorError extends Error {}

/** A message that the emulator has accepted. */
export interface ArrivedMessage {
  number: number;
  /** The token, /topics/NAME or condition (FCM), or the channel of a broadcast (APNs). */
  token: string;
  /** The message as it was sent: the field `message` of FCM's request, the body of APNs' request. */
  payload: any;
  messageId: string;
  collapseKey: string | null;
  /** The topic: FCM's, or the header `apns-topic`. */
  topic: string | null;
  pushType: string | null;
  highPriority: boolean;
}

/** The requests for one token. */
export interface Counts {
  attempts: number;
  accepted: number;
  rejected: number;
  validateOnly: number;
}

export interface StartOptions {
  /** The policy from the start, and again after a reset; everything is accepted if absent. */
  policy?: Policy;
  /** The path of stentor; STENTOR_BIN or the first in PATH if absent. */
  program?: string;
}

/** An emulator in a process of its own, on free ports of this machine; it ends with this process at the latest. */
declare abstract class Emulator {
  /** The URL of the push service, and its parts. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** The certificate that clients must trust. */
  readonly caFile: string;
  /** The URL of the control port (docs/emulators.md). */
  readonly control: string;
  /** The credential of a sender: a service account (FCM) or a signing key (APNs). */
  readonly credentialFile: string;
  /** The process of the emulator. */
  readonly pid: number;

  /** Returns the messages that were accepted since the last reset, the latest 10,000: all, or those for a token. */
  messages(filter?: { token?: string }): Promise<ArrivedMessage[]>;
  /** Waits until this number of messages (1) has been accepted, and returns them; rejects after `timeoutMs` (10,000). */
  waitFor(count?: number, options?: { token?: string; timeoutMs?: number }): Promise<ArrivedMessage[]>;
  /** Refuses a token with an error of the push service: always, or the next `times`. The latest call for a token counts. */
  answer(token: string, error: string, options?: { times?: number; retryAfterSeconds?: number }): Promise<void>;
  /** Replaces the policy and all answers, until the next reset. */
  setPolicy(policy: Policy): Promise<void>;
  /** Returns the counts of a token or of /topics/NAME since the last reset. */
  counts(token: string): Promise<Counts>;
  /** Forgets messages, counts and answers, and returns to the policy of the start. */
  reset(): Promise<void>;
  /**
   * Leads TLS connections of this process to the vendor's hosts to the emulator, and makes them trust its authority. Returns a function
   * that ends it.
   */
  redirect(): () => void;
  /** Ends the emulator and removes its files. */
  stop(): Promise<void>;
}

/** An emulator of Firebase Cloud Messaging (HTTP v1). */
export declare class FcmEmulator extends Emulator {
  private constructor();
  static start(options?: StartOptions): Promise<FcmEmulator>;
  /** The project of the service account. */
  readonly projectId: string;
}

/** An emulator of the Apple Push Notification service. */
export declare class ApnsEmulator extends Emulator {
  private constructor();
  static start(options?: StartOptions): Promise<ApnsEmulator>;
  /** The id of the signing key, and its team. */
  readonly keyId: string;
  readonly teamId: string;
}
