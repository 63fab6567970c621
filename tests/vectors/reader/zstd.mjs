// One zstd frame (RFC 8878). fzstd unpacks it; what fzstd does not check is checked here.
import { decompress } from 'fzstd';
import { FRAME_PLAIN, WINDOW } from './limits.mjs';
import { damaged } from './refusal.mjs';
import { xxh64 } from './xxh64.mjs';

const MAGIC = 0xfd2fb528;
const BLOCK = 128 * 1024;
const RLE = 1;
const RESERVED = 3;

// The content of the bytes, which have to be one frame that states a content size from `least` to `most`.
export function unpack(frame, least, most = least) {
  let header;
  let plain;
  try {
    header = headerOf(frame);
    if (header.content < least || header.content > most) throw damaged(`the frame states ${header.content} bytes`);
    checkBlocks(frame, header);
    plain = decompress(frame);
  } catch (error) {
    // Both fzstd and a read beyond the end of the frame throw errors of their own.
    throw error.code === 'damaged' ? error : damaged(`zstd: ${error.message}`);
  }
  const checksum = BigInt(frame.readUInt32LE(frame.length - 4));
  if (plain.length !== header.content || BigInt.asUintN(32, xxh64(plain)) !== checksum) {
    throw damaged('the content of a zstd frame does not fit its checksum');
  }
  return Buffer.from(plain.buffer, plain.byteOffset, plain.length);
}

function headerOf(frame) {
  if (frame.readUInt32LE(0) !== MAGIC) throw damaged('no zstd frame');
  const descriptor = frame[4];
  const single = (descriptor & 0x20) !== 0;
  if ((descriptor & 0x08) !== 0) throw damaged('a reserved bit of a zstd frame is set');
  if ((descriptor & 0x04) === 0) throw damaged('a zstd frame without checksum');
  let at = 5;
  let window = 0;
  if (!single) {
    const base = 2 ** (10 + (frame[at] >> 3));
    window = base + (base / 8) * (frame[at] & 7);
    at += 1;
  }
  const dictionary = [0, 1, 2, 4][descriptor & 3];
  if (dictionary > 0 && frame.readUIntLE(at, dictionary) !== 0) throw damaged('a zstd frame with a dictionary');
  at += dictionary;
  const width = [single ? 1 : 0, 2, 4, 8][descriptor >> 6];
  if (width === 0) throw damaged('a zstd frame without content size');
  const content = contentOf(frame, at, width);
  if (single) window = content;
  if (window > WINDOW) throw damaged(`a zstd frame with a window of ${window} bytes`);
  if (content > FRAME_PLAIN) throw damaged(`a zstd frame of ${content} bytes`);
  return { content, window, end: at + width };
}

function contentOf(frame, at, width) {
  if (width === 8) return Number(frame.readBigUInt64LE(at));
  return frame.readUIntLE(at, width) + (width === 2 ? 256 : 0);
}

// The blocks and the checksum have to end where the frame ends, so that nothing stands after it.
function checkBlocks(frame, header) {
  const largest = Math.min(header.window, BLOCK);
  let at = header.end;
  let last = false;
  while (!last) {
    const block = frame.readUIntLE(at, 3);
    last = (block & 1) === 1;
    const type = (block >> 1) & 3;
    const size = block >> 3;
    if (type === RESERVED || size > largest) throw damaged('no such block in a zstd frame');
    at += 3 + (type === RLE ? 1 : size);
  }
  if (at + 4 !== frame.length) throw damaged('a zstd frame does not end where its row says');
}
