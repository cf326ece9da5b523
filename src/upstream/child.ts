import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { Clock } from '../base/clock.js';

export interface ChildSpec {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

export interface EndGraces {
  /** From the end of its input to SIGTERM. */
  readonly closeGraceMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly termGraceMs: number;
}

/** How long the system may take to bury what got a SIGKILL. */
const KILL_WAIT_MS = 500;
/** Between two looks at a group whose leader is gone: nothing tells when its last member leaves. */
const POLL_MS = 20;
/** Process groups exist on POSIX only; on Windows a signal reaches the child alone. */
const HAS_GROUPS = process.platform !== 'win32';

/** The children that still run; the composition root makes one. */
export class ChildRegistry {
  readonly #children = new Set<Child>();

  get size(): number {
    return this.#children.size;
  }

  add(child: Child): void {
    this.#children.add(child);
  }

  delete(child: Child): void {
    this.#children.delete(child);
  }

  /** SIGKILL to every child and its descendants, synchronously: for the gateway's own 'exit'. */
  killAllChildren(): void {
    for (const child of this.#children) child.kill();
    this.#children.clear();
  }
}

/** Starts a program as the leader of its own process group. Rejects with what the system, or Node, says. */
export function startChild(spec: ChildSpec, registry: ChildRegistry, clock: Clock): Promise<Child> {
  return new Promise((resolve, reject) => {
    const started = spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: { ...spec.env },
      detached: HAS_GROUPS,
      shell: false,
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
    started.once('spawn', () => resolve(new Child(started, registry, clock)));
    // Stays for the child's life: a signal that cannot be sent is an 'error' too.
    started.on('error', reject);
  });
}

/** A running child and the process group that it leads. */
export class Child {
  readonly process: ChildProcessWithoutNullStreams;
  readonly #pid: number;
  readonly #registry: ChildRegistry;
  readonly #clock: Clock;
  readonly #exited: Promise<void>;
  #hasExited = false;
  /** Nothing of the group runs; its number may belong to others by now and is never signalled again. */
  #isEmpty = false;

  constructor(started: ChildProcessWithoutNullStreams, registry: ChildRegistry, clock: Clock) {
    this.process = started;
    this.#pid = started.pid as number;
    this.#registry = registry;
    this.#clock = clock;
    registry.add(this);
    this.#exited = new Promise((resolve) => {
      started.once('exit', () => {
        this.#hasExited = true;
        this.#isRunning();
        resolve();
      });
    });
  }

  /**
   * Waits for the whole group to leave by itself (its input must have been ended), then asks with SIGTERM, then kills.
   * Never rejects. To be called once.
   */
  async end(graces: EndGraces): Promise<void> {
    // The clock's timers do not keep the process alive, and neither does a group without its leader.
    const hold = setInterval(() => {}, 2 ** 30);
    try {
      if (await this.#leavesWithin(graces.closeGraceMs)) return;
      this.#signal('SIGTERM');
      if (await this.#leavesWithin(graces.termGraceMs)) return;
      this.#signal('SIGKILL');
      await this.#leavesWithin(KILL_WAIT_MS);
    } finally {
      clearInterval(hold);
      this.#registry.delete(this);
    }
  }

  /** SIGKILL to the group, at once. */
  kill(): void {
    if (this.#isRunning()) this.#signal('SIGKILL');
  }

  async #leavesWithin(limitMs: number): Promise<boolean> {
    let late = false;
    let timeUp = (): void => {};
    const limit = new Promise<void>((resolve) => {
      timeUp = resolve;
    });
    const timer = this.#clock.after(limitMs, () => {
      late = true;
      timeUp();
    });
    await Promise.race([this.#exited, limit]);
    while (!late && this.#isRunning()) await this.#pause();
    timer.cancel();
    return !this.#isRunning();
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(POLL_MS, resolve);
    });
  }

  #isRunning(): boolean {
    if (!this.#hasExited) return true;
    if (!this.#isEmpty && !(HAS_GROUPS && this.#signal(0))) {
      this.#isEmpty = true;
      this.#registry.delete(this);
    }
    return !this.#isEmpty;
  }

  /** False when nobody is there to take it. Signal 0 only asks. */
  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(HAS_GROUPS ? -this.#pid : this.#pid, signal);
    } catch {
      return false;
    }
  }
}
