import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { damaged, incomplete } from './refusal.mjs';

// Without O_NONBLOCK, opening a FIFO would wait for a writer.
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const MISSING = ['ENOENT', 'ENOTDIR'];
const NO_FILE = ['ELOOP', 'ENXIO', 'EISDIR'];

// A regular file, open for reading.
export class File {
  constructor(path) {
    this.path = path;
    this.descriptor = open(path);
    const stat = fstatSync(this.descriptor);
    this.size = stat.size;
    if (!stat.isFile()) {
      this.close();
      throw damaged(`${path}: no regular file`);
    }
  }

  // Exactly these bytes.
  read(offset, length) {
    if (offset + length > this.size) throw damaged(`${this.path}: ends too early`);
    const bytes = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const count = readSync(this.descriptor, bytes, done, length - done, offset + done);
      if (count === 0) throw damaged(`${this.path}: ends too early`);
      done += count;
    }
    return bytes;
  }

  close() {
    closeSync(this.descriptor);
  }
}

// Calls a function with an open file, and closes it whatever happens.
export function withFile(path, use) {
  const file = new File(path);
  try {
    return use(file);
  } finally {
    file.close();
  }
}

function open(path) {
  try {
    return openSync(path, FLAGS);
  } catch (error) {
    if (MISSING.includes(error.code)) throw incomplete(`${path}: missing`);
    if (NO_FILE.includes(error.code)) throw damaged(`${path}: no regular file`);
    throw error;
  }
}
