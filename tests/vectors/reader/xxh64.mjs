// XXH64 with seed 0, of which a zstd frame carries the low 32 bits.
const P1 = 0x9e3779b185ebca87n;
const P2 = 0xc2b2ae3d27d4eb4fn;
const P3 = 0x165667b19e3779f9n;
const P4 = 0x85ebca77c2b2ae63n;
const P5 = 0x27d4eb2f165667c5n;

const u64 = (value) => BigInt.asUintN(64, value);
const rotate = (value, bits) => u64(value << bits) | (value >> (64n - bits));
const round = (lane, word) => u64(rotate(u64(lane + word * P2), 31n) * P1);
const merge = (hash, lane) => u64((hash ^ round(0n, lane)) * P1 + P4);

export function xxh64(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let hash = P5;
  if (bytes.length >= 32) {
    const lanes = [u64(P1 + P2), P2, 0n, u64(-P1)];
    for (; at + 32 <= bytes.length; at += 32) {
      for (let lane = 0; lane < 4; lane += 1) {
        lanes[lane] = round(lanes[lane], view.getBigUint64(at + 8 * lane, true));
      }
    }
    const [a, b, c, d] = lanes;
    hash = u64(rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n));
    hash = lanes.reduce(merge, hash);
  }
  hash = u64(hash + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8) {
    hash = u64(rotate(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4);
  }
  if (at + 4 <= bytes.length) {
    hash = u64(rotate(hash ^ u64(BigInt(view.getUint32(at, true)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (; at < bytes.length; at += 1) {
    hash = u64(rotate(hash ^ u64(BigInt(bytes[at]) * P5), 11n) * P1);
  }
  hash = u64((hash ^ (hash >> 33n)) * P2);
  hash = u64((hash ^ (hash >> 29n)) * P3);
  return hash ^ (hash >> 32n);
}
