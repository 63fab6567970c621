// One zstd frame (RFC 8878), unpacked into exactly the bytes that the index says it holds.

import { Decompress } from 'fzstd';

import { Refused, damaged } from './json.mjs';

const MAGIC = 0xfd2fb528;
const WINDOW_LIMIT = 128n * 1024n * 1024n;

/** The bytes of the one frame that `data` is; `size` is what it must hold. */
export function unpack(data, size) {
  const header = readHeader(data);
  if (header.size !== BigInt(size)) throw damaged('a frame states another size');
  if (!header.checksum) throw damaged('a frame without checksum');
  if (header.window > WINDOW_LIMIT) throw damaged('a window beyond the limit');
  const end = skipBlocks(data, header.length);
  if (end + 4 !== data.length) throw damaged('a frame is cut, or bytes follow it');
  const plain = decompressed(data, size);
  if (BigInt(new DataView(data.buffer, data.byteOffset + end).getUint32(0, true)) !== (xxh64(plain) & 0xffffffffn)) {
    throw damaged('the checksum of a frame is wrong');
  }
  return plain;
}

/** What the frame holds, block by block: a frame that holds more than it states is left at once. */
function decompressed(data, size) {
  const plain = new Uint8Array(size);
  let total = 0;
  const stream = new Decompress((piece) => {
    if (total + piece.length > size) throw damaged('a frame holds more than it states');
    plain.set(piece, total);
    total += piece.length;
  });
  try {
    stream.push(data, true);
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw damaged(`a frame cannot be unpacked (${error.message})`);
  }
  if (total !== size) throw damaged('a frame holds less than it states');
  return plain;
}

function readHeader(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  try {
    if (view.getUint32(0, true) !== MAGIC) throw damaged('no zstd frame');
    const descriptor = view.getUint8(4);
    if (descriptor & 0x08) throw damaged('a reserved bit is set');
    if (descriptor & 0x03) throw damaged('a dictionary is needed');
    const single = (descriptor & 0x20) !== 0;
    let length = 5;
    let window = 0n;
    if (!single) {
      const byte = view.getUint8(length);
      const base = 1n << BigInt(10 + (byte >> 3));
      window = base + (base / 8n) * BigInt(byte & 7);
      length += 1;
    }
    const flag = descriptor >> 6;
    let size = null;
    if (flag === 0 && single) size = BigInt(view.getUint8(length));
    if (flag === 1) size = BigInt(view.getUint16(length, true)) + 256n;
    if (flag === 2) size = BigInt(view.getUint32(length, true));
    if (flag === 3) size = view.getBigUint64(length, true);
    length += flag === 0 ? (single ? 1 : 0) : 1 << flag;
    return { checksum: (descriptor & 0x04) !== 0, size, window: single ? size : window, length };
  } catch (error) {
    if (error instanceof RangeError) throw damaged('a frame is cut in its header');
    throw error;
  }
}

/** Where the last block ends. */
function skipBlocks(data, start) {
  let at = start;
  for (;;) {
    if (at + 3 > data.length) throw damaged('a frame is cut');
    const block = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16);
    const kind = (block >> 1) & 3;
    if (kind === 3) throw damaged('a block of a reserved kind');
    at += 3 + (kind === 1 ? 1 : block >> 3);
    if (block & 1) return at;
  }
}

const [P1, P2, P3, P4, P5] = [
  11400714785074694791n, 14029467366897019727n, 1609587929392839161n, 9650029242287828579n, 2870177450012600261n,
];
const wrap = (value) => BigInt.asUintN(64, value);
const rotate = (value, bits) => wrap((value << bits) | (value >> (64n - bits)));
const round = (lane, input) => wrap(rotate(wrap(lane + input * P2), 31n) * P1);

/** XXH64 with seed 0. */
export function xxh64(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let at = 0;
  let hash = P5;
  if (data.length >= 32) {
    const lanes = [wrap(P1 + P2), P2, 0n, wrap(-P1)];
    for (; at + 32 <= data.length; at += 32) {
      for (let lane = 0; lane < 4; lane += 1) {
        lanes[lane] = round(lanes[lane], view.getBigUint64(at + lane * 8, true));
      }
    }
    hash = wrap(rotate(lanes[0], 1n) + rotate(lanes[1], 7n) + rotate(lanes[2], 12n) + rotate(lanes[3], 18n));
    for (const lane of lanes) hash = wrap((hash ^ round(0n, lane)) * P1 + P4);
  }
  hash = wrap(hash + BigInt(data.length));
  for (; at + 8 <= data.length; at += 8) {
    hash = wrap(rotate(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4);
  }
  if (at + 4 <= data.length) {
    hash = wrap(rotate(hash ^ wrap(BigInt(view.getUint32(at, true)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (; at < data.length; at += 1) hash = wrap(rotate(hash ^ wrap(BigInt(data[at]) * P5), 11n) * P1);
  hash = wrap((hash ^ (hash >> 33n)) * P2);
  hash = wrap((hash ^ (hash >> 29n)) * P3);
  return hash ^ (hash >> 32n);
}
