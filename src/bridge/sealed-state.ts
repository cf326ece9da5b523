import { createCipheriv, createDecipheriv } from 'node:crypto';
import { secretBytes } from '../base/random.js';

/** What a `requestState` of ours says, and whom it binds. */
export interface State {
  /** The call that waits; empty where the request is to be run anew. */
  readonly call: string;
  readonly serverId: string;
  /** Principal and token. */
  readonly owner: string;
  /** Of the capabilities that its agent declared: it is asked by these. */
  readonly fingerprint: string;
  readonly method: string;
  /** Of the params without `_meta` and inputs. */
  readonly digest: string;
  readonly expiresAt: number;
}

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Seals states so that an agent can neither read nor change them. The key is the process's own and never leaves it. */
export class StateSeal {
  readonly #key = secretBytes(32);

  /** Base64url text. */
  seal(state: State): string {
    const nonce = secretBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce);
    const sealed = Buffer.concat([cipher.update(JSON.stringify(state)), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Undefined for whatever was not sealed here, or was changed since. */
  open(text: string): State | undefined {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length <= NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== text) return undefined;
    const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    try {
      const plain = [decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()];
      return JSON.parse(Buffer.concat(plain).toString('utf8')) as State;
    } catch {
      return undefined;
    }
  }
}
