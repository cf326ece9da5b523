const POSIX_NAMES = ['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER'];
const WINDOWS_NAMES = [
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATH',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'PROGRAMFILES(X86)',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'TZ',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
];

/**
 * What a child gets to see: the declared variables, and of the gateway's own those without which programs do not run.
 * Everything else may be a secret of the gateway or of another server.
 */
export function childEnvironment(
  gateway: NodeJS.ProcessEnv,
  declared: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  // Windows takes names that differ in case only for one.
  const fold = (name: string): string => (platform === 'win32' ? name.toUpperCase() : name);
  const allowed = new Set(platform === 'win32' ? WINDOWS_NAMES : POSIX_NAMES);
  const own = new Set(Object.keys(declared).map(fold));
  const inherited = Object.entries(gateway).filter(
    (entry): entry is [string, string] =>
      isPlain(entry[1]) && isAllowed(fold(entry[0]), allowed) && !own.has(fold(entry[0])),
  );
  return { ...Object.fromEntries(inherited), ...declared };
}

function isAllowed(name: string, allowed: ReadonlySet<string>): boolean {
  return allowed.has(name) || name.startsWith('LC_');
}

/** False for a function that an old shell exported: it would run in the child's shell. */
function isPlain(value: string | undefined): boolean {
  return value !== undefined && !value.startsWith('()');
}
