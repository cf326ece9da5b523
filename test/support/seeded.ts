/** Numbers in [0, 1) that are the same in every run: a linear congruential generator of 32 bits. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Takes a random item out of a list that is not empty. */
export function takeRandom<T>(list: T[], random: () => number): T {
  const at = Math.floor(random() * list.length);
  const taken = list[at] as T;
  list[at] = list.at(-1) as T;
  list.pop();
  return taken;
}
