/** Sealing messages for one device (RFC 8291), so that the server holds what it cannot read. */
import type { DeviceKeys } from "./types.js";

const [AUTH_BYTES, SALT_BYTES, KEY_BYTES, NONCE_BYTES] = [16, 16, 16, 12];
/** A record's size where its text is short; a larger text makes a larger one. */
const RECORD_MIN_BYTES = 4096;
const TAG_BYTES = 16;
/** Ends the text of the last record (RFC 8188, 2). */
const LAST_RECORD = 2;
const CURVE = { name: "ECDH", namedCurve: "P-256" };

/** What a message has as `gateway` when its sender has sealed it. */
export type Sealed = { raw: string; encoding: "aes128gcm" };

/**
 * Seals content for a device; returns what a message to it has as `gateway`. `keys` is what `client.devices.show(…)` has as `keys`.
 * The message must have neither notification nor data, which would be readable.
 */
export async function seal(keys: DeviceKeys, content: Uint8Array | string): Promise<Sealed> {
  const own = await crypto.subtle.generateKey(CURVE, false, ["deriveBits"]);
  const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const body = await sealWith(keys, content, own, salt);
  return { raw: base64(body), encoding: "aes128gcm" };
}

/** Seals with a given key pair and salt, neither of which may ever be used again. */
export async function sealWith(
  keys: DeviceKeys,
  content: Uint8Array | string,
  own: CryptoKeyPair,
  salt: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const [point, auth] = [bytesOf(keys.p256dh), bytesOf(keys.auth)];
  if (auth.length !== AUTH_BYTES) throw new TypeError(`auth has ${auth.length} bytes, not ${AUTH_BYTES}`);
  const device = await crypto.subtle.importKey("raw", point, CURVE, false, []);
  const shared = await crypto.subtle.deriveBits({ name: "ECDH", public: device }, own.privateKey, 256);
  const ownPoint = new Uint8Array(await crypto.subtle.exportKey("raw", own.publicKey));
  const secret = await derived(auth, shared, joined(ascii("WebPush: info\0"), point, ownPoint), 32);
  const key = await derived(salt, secret, ascii("Content-Encoding: aes128gcm\0"), KEY_BYTES);
  const iv = await derived(salt, secret, ascii("Content-Encoding: nonce\0"), NONCE_BYTES);
  const text = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const cipher = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  const marked = joined(text, Uint8Array.of(LAST_RECORD));
  const record = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv }, cipher, marked));
  const size = new DataView(new ArrayBuffer(4));
  size.setUint32(0, Math.max(RECORD_MIN_BYTES, marked.length + TAG_BYTES));
  return joined(salt, new Uint8Array(size.buffer), Uint8Array.of(ownPoint.length), ownPoint, record);
}

/** HKDF with SHA-256 (RFC 5869). */
async function derived(salt: BufferSource, input: BufferSource, info: BufferSource, bytes: number): Promise<ArrayBuffer> {
  const key = await crypto.subtle.importKey("raw", input, "HKDF", false, ["deriveBits"]);
  return crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, bytes * 8);
}

function joined(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function ascii(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return ascii(atob(text.replaceAll("-", "+").replaceAll("_", "/")));
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
