import { createRequire } from 'node:module';

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };

/** Who the gateway says it is. */
export const PRODUCT = { name: 'sidegate', version } as const;
