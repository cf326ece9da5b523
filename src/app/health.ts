/** Pages for whoever runs the process: cheap, and the same for every caller. */

interface Page {
  readonly status: number;
  readonly body: string;
}

/**
 * `/healthz`: 200 as long as the process answers at all. `/readyz`: 200 while it takes requests, 503 once it drains;
 * servers that are down do not make it unready, since they come back by themselves.
 */
export function adminPages(draining: () => boolean): (path: string) => Page | undefined {
  return (path) => {
    if (path === '/healthz') return { status: 200, body: '{"status":"ok"}' };
    if (path !== '/readyz') return undefined;
    return draining()
      ? { status: 503, body: '{"status":"draining"}' }
      : { status: 200, body: '{"status":"ready"}' };
  };
}
