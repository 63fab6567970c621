import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { withFile } from './file.mjs';
import { findRow } from './index.mjs';
import { recordOf } from './record.mjs';
import { damaged } from './refusal.mjs';
import { unpack } from './zstd.mjs';

// The records of a segment in the order written, all of them proved.
export function readSegment(folder, segment, frames) {
  return withFile(`${folder}/${segment.file}`, (file) => {
    if (file.size !== segment.stored) throw damaged(`${file.path}: ${file.size} bytes`);
    const hash = createHash('sha256');
    const records = [];
    for (const frame of frames) {
      const stored = file.read(frame.offset, frame.stored);
      hash.update(stored);
      const plain = segment.codec === 'zstd' ? unpack(stored, frame.plain) : stored;
      for (const row of frame.rows) records.push(recordAt(plain, row));
    }
    if (hash.digest('hex') !== segment.digest) throw damaged(`${file.path}: another digest than its name`);
    return records;
  });
}

// One record by itself, or undefined: of the segment, only its frame is read.
export function findRecord(folder, manifest, key) {
  const row = findRow(folder, manifest, key);
  if (row === undefined) return undefined;
  const segment = manifest.segments[row.segment];
  if (segment === undefined) throw damaged(`${key}: no segment ${row.segment}`);
  const end = row.start + row.length;
  if (row.offset + row.stored > segment.stored || end > segment.plain) throw damaged(`${key}: outside its segment`);
  return withFile(`${folder}/${segment.file}`, (file) => {
    const stored = file.read(row.offset, row.stored);
    return recordAt(segment.codec === 'zstd' ? unpack(stored, end, segment.plain) : stored, row);
  });
}

function recordAt(plain, row) {
  const line = plain.subarray(row.start, row.start + row.length);
  if (crc32(line) !== row.crc32) throw damaged(`${row.episode}: another CRC-32 than its row`);
  const record = recordOf(line);
  if (record.episode !== row.episode || record.boundary !== row.boundary) {
    throw damaged(`${row.episode}: the record is another than its row says`);
  }
  return record;
}
