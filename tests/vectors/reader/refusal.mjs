// Why a checkpoint is refused. The code is for programs, the message for people.
export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export const damaged = (message) => new Refusal('damaged', message);
export const incomplete = (message) => new Refusal('incomplete', message);
export const unsupported = (message) => new Refusal('unsupported', message);
