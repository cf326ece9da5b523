/** Shorter ones stand in any text by accident. */
const LEAST_LENGTH = 4;

/** A text without the secrets in it. */
export function concealed(text: string, secrets: readonly string[]): string {
  return secrets.reduce(
    (shown, secret) => (secret.length < LEAST_LENGTH ? shown : shown.replaceAll(secret, '…')),
    text,
  );
}
