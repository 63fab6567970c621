// An object whose order counts. Keys are strings, or Texts, which are equal by their code points.
export class Dict {
  #entries = new Map();

  has(key) {
    return this.#entries.has(token(key));
  }

  get(key) {
    return this.#entries.get(token(key))?.[1];
  }

  set(key, value) {
    this.#entries.set(token(key), [key, value]);
  }

  get size() {
    return this.#entries.size;
  }

  entries() {
    return [...this.#entries.values()];
  }
}

// No other string starts with a surrogate that stands alone, so a Text cannot meet a string here.
function token(key) {
  return typeof key === 'string' ? key : `\udc00${key.points}`;
}
