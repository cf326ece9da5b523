import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError, messageOf } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import { isModernRevision } from '../protocol/revisions.js';
import { MessageError } from '../wire/message.js';
import type { Backend } from './backend.js';
import { type Failure, failureOf, refusal } from './errors.js';
import { corsHeaders, createGuard, type Guard, type GuardOptions, preflightHeaders } from './guard.js';
import { sendEmpty, sendFailure } from './respond.js';
import { parseTarget, prefixOf, type Route, routeOf, type Target } from './routes.js';
import type { SsePair } from './sse-pair.js';
import type { Streamable } from './streamable.js';

/** A page of the operator's: health, metrics. */
export interface AdminPage {
  readonly status: number;
  readonly body: string;
  /** `application/json` by default. */
  readonly contentType?: string;
}

export interface DispatchOptions extends GuardOptions {
  readonly emit: EventSink;
  /** Pages beside the protocol; undefined where there is none of that path. */
  readonly admin?: (path: string) => AdminPage | undefined;
}

type Endpoint = Extract<Route, { prefix: string }>;

const METHODS: Readonly<Record<Endpoint['kind'], readonly string[]>> = {
  mcp: ['POST', 'GET', 'DELETE', 'OPTIONS'],
  sse: ['GET', 'OPTIONS'],
  messages: ['POST', 'OPTIONS'],
};
const PAGE_METHODS = ['GET', 'HEAD'];

/** Takes each HTTP request to what answers it. Whatever comes gets an answer. */
export class Dispatcher {
  readonly #options: DispatchOptions;
  readonly #backend: Backend;
  readonly #streamable: Streamable;
  readonly #pair: SsePair;
  readonly #guard: Guard;

  constructor(options: DispatchOptions, backend: Backend, streamable: Streamable, pair: SsePair) {
    this.#options = options;
    this.#backend = backend;
    this.#streamable = streamable;
    this.#pair = pair;
    this.#guard = createGuard(options);
  }

  /** Never rejects. */
  async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    try {
      await this.#answer(req, res, parseTarget(req.url ?? ''));
    } catch (error) {
      this.#failed(res, error);
    }
  }

  #answer(req: IncomingMessage, res: ServerResponse, target: Target): void | Promise<void> {
    const verdict = this.#guard(req.headers.host, req.headers.origin);
    if (!verdict.allowed) return sendFailure(res, refusal(403, verdict.why));
    if (verdict.corsOrigin !== undefined)
      for (const [name, value] of Object.entries(corsHeaders(verdict.corsOrigin))) res.setHeader(name, value);
    const route = routeOf(target.path, this.#backend.serverIds());
    switch (route.kind) {
      case 'none':
        return this.#page(req, res, target.path);
      case 'ambiguous':
        return sendFailure(res, this.#whichServer());
      case 'unknown_server':
        return sendFailure(res, unknownServer(route.serverId));
      default:
        return this.#endpoint(req, res, route, target);
    }
  }

  #endpoint(
    req: IncomingMessage,
    res: ServerResponse,
    route: Endpoint,
    target: Target,
  ): void | Promise<void> {
    const { kind, serverId, prefix } = route;
    const methods = METHODS[kind];
    const method = req.method ?? '';
    if (method === 'OPTIONS')
      return sendEmpty(res, 204, {
        Allow: methods.join(', '),
        ...preflightHeaders(methods.join(', '), req.headers['access-control-request-headers']),
      });
    if (!methods.includes(method)) return sendFailure(res, notAllowed(methods));
    if (method !== 'POST' && isModernRevision(req.headers['mcp-protocol-version']))
      return sendFailure(res, notAllowed(['POST']));
    if (kind === 'sse') return this.#pair.open(req, res, serverId, prefix);
    if (kind === 'messages') return this.#pair.post(req, res, serverId, target.query.get('sessionId'));
    if (method === 'POST') return this.#streamable.post(req, res, serverId);
    if (method === 'GET') return this.#streamable.get(req, res, serverId);
    return this.#streamable.delete(req, res, serverId);
  }

  #page(req: IncomingMessage, res: ServerResponse, path: string): void {
    const page = this.#options.admin?.(path);
    if (!page) return sendFailure(res, refusal(404, 'There is nothing here'));
    if (!PAGE_METHODS.includes(req.method ?? '')) return sendFailure(res, notAllowed(PAGE_METHODS));
    const body = Buffer.from(page.body);
    res.writeHead(page.status, {
      'Content-Type': page.contentType ?? 'application/json',
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
    });
    res.end(body);
  }

  #whichServer(): Failure {
    const endpoints = this.#backend.serverIds().map((id) => `${prefixOf(id)}/mcp`);
    return { ...refusal(404, 'The path must name one of the servers'), data: { endpoints } };
  }

  #failed(res: ServerResponse, error: unknown): void {
    const known = error instanceof GatewayError || error instanceof MessageError;
    if (!known)
      this.#options.emit({ type: 'warning', message: `A request failed unexpectedly: ${messageOf(error)}` });
    if (res.headersSent) res.destroy();
    else sendFailure(res, failureOf(error, ''), error instanceof MessageError ? error.id : '');
  }
}

function unknownServer(serverId: string): Failure {
  const message = `No server ${JSON.stringify(serverId)} is configured`;
  return failureOf(new GatewayError('server_unknown', message, { serverId }), serverId);
}

function notAllowed(methods: readonly string[]): Failure {
  return { ...refusal(405, 'Method not allowed'), headers: { Allow: methods.join(', ') } };
}
