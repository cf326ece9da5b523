/** Lets a test wait until something that it observes has come true. */
export class Watch {
  readonly #waiting = new Set<() => void>();

  /** To be called after every change. */
  changed(): void {
    for (const look of [...this.#waiting]) look();
  }

  until(isTrue: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!isTrue()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}
