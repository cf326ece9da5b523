import { environment } from '../config/env.js';
import { parseConfig } from '../config/load.js';
import type { GatewayConfig } from '../config/types.js';
import type { Surroundings } from './core.js';
import { shielded } from './shielded.js';

/**
 * A configuration that is checked, whether it came so or in the shape of `sidegate.json`; its warnings become events.
 * Throws ConfigError where a general setting is wrong.
 */
export function checkedConfig(given: GatewayConfig | object, { env, emit }: Surroundings): GatewayConfig {
  if (isChecked(given)) return given;
  const { config, warnings } = parseConfig(given, env ?? environment());
  for (const message of warnings) shielded('The sink of events', () => emit?.({ type: 'warning', message }));
  return config;
}

function isChecked(config: GatewayConfig | object): config is GatewayConfig {
  return 'servers' in config && Array.isArray(config.servers) && 'disabled' in config;
}
