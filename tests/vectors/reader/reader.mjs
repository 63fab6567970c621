// A reader of checkpoints, written from FORMAT.md alone. It checks everything and returns everything.

import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { Fields, Refused, damaged, parse, text } from './json.mjs';
import { depth, ours, patched, readValue } from './values.mjs';
import { unpack } from './zstd.mjs';

const DIGEST = /^[0-9a-f]{64}$/;
const SEGMENT = '[A-Za-z0-9][A-Za-z0-9._-]*';
const FOLDER = new RegExp(`^${SEGMENT}$`);
const NAME = new RegExp(`^${SEGMENT}(?:/${SEGMENT})*$`);
const BODY_DEPTH = 1000;
const BLOCK_ROWS = 4096;

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

function readFile(folder, name) {
  const path = join(folder, name);
  if (!existsSync(path)) throw new Refused('incomplete', `${name} is missing`);
  if (!lstatSync(path).isFile()) throw damaged(`${name} is no file`);
  return readFileSync(path);
}

/** The digest of a self-checked file, and the members of its body. */
export function unseal(bytes, required = null) {
  const [prefix, middle, suffix] = ['{"sha256":"', '","body":', '}\n'].map((each) => Buffer.from(each));
  const start = prefix.length + 64 + middle.length;
  const digest = bytes.subarray(prefix.length, prefix.length + 64).toString('latin1');
  const framed =
    bytes.length >= start + suffix.length &&
    bytes.subarray(0, prefix.length).equals(prefix) &&
    DIGEST.test(digest) &&
    bytes.subarray(prefix.length + 64, start).equals(middle) &&
    bytes.subarray(-suffix.length).equals(suffix);
  if (!framed) throw damaged('not a self-checked file');
  const body = bytes.subarray(start, -suffix.length);
  if (sha256(body) !== digest) throw damaged('changed after writing');
  if (required !== null && digest !== required) throw damaged('another file than the one that was named');
  return { digest, fields: new Fields(parse(body, BODY_DEPTH)) };
}

function checkFormat(fields) {
  if (!fields.has('format') || fields.any('format') !== 1n) throw new Refused('unsupported', 'another format version');
  if (fields.strings('features').length > 0) throw new Refused('unsupported', 'an unknown feature');
}

/** The rollout and attempt that a capture key names. */
export function decodeKey(key) {
  const match = /^(.*?)(?:-a([1-9][0-9]*))?$/s.exec(key);
  const [rollout, digits] = [match[1], match[2]];
  const good = FOLDER.test(rollout) && rollout.length <= 256 && !/-a[1-9][0-9]*$/.test(rollout);
  if (!good || (digits ?? '').length > 9 || key.includes('\n')) throw damaged('no capture key');
  return { rollout, attempt: Number(digits ?? 0) };
}

function sortedKeys(fields, name) {
  const keys = fields.strings(name);
  keys.forEach(decodeKey);
  if (!keys.every((key, index) => index === 0 || keys[index - 1] < key)) throw damaged(`${name} are not sorted`);
  return keys;
}

/** Everything that a checkpoint's folder holds. */
export function readCheckpoint(folder) {
  const { fields } = unseal(readFile(folder, 'checkpoint.json'));
  checkFormat(fields);
  const checkpoint = {
    id: fields.label('checkpoint_id'),
    sequence: fields.integer('sequence'),
    cut: null,
    episodes: sortedKeys(fields, 'episodes'),
    restarts: sortedKeys(fields, 'restarts'),
    marks: readMarks(fields.object('marks')),
    state: readState(fields),
  };
  if (checkpoint.restarts.some((key) => checkpoint.episodes.includes(key))) throw damaged('a restart was saved');
  const base = fields.any('cut') === null ? folder : readCut(folder, fields.object('cut'), checkpoint);
  const participants = new Map();
  for (const [name, value] of fields.object('participants').members) {
    if (!NAME.test(name) || name.length > 128) throw damaged('no name of a participant');
    const reference = new Fields(value);
    const [kind, digest] = [reference.label('kind'), reference.string('manifest', DIGEST)];
    participants.set(name, { kind, digest });
  }
  const distinct = new Set([...participants.keys()].map((name) => name.toLowerCase()));
  if (distinct.size !== participants.size) throw damaged('two names differ only in case');
  for (const [name, { kind, digest }] of participants) {
    const part = readParticipant(base, name, digest);
    if (part.kind !== kind || part.checkpointId !== checkpoint.id) throw damaged('a manifest of something else');
    participants.set(name, part);
  }
  const keys = new Set([...participants.values()].flatMap((part) => part.records.map((each) => each.episode)));
  if ([...keys].sort().join() !== checkpoint.episodes.join()) throw damaged('episodes are not those of the participants');
  return { checkpoint, participants };
}

function readCut(folder, reference, checkpoint) {
  const base = join(folder, reference.string('name', FOLDER));
  checkpoint.cut = reference.string('name');
  const { fields } = unseal(readFile(base, 'cut.json'), reference.string('sha256', DIGEST));
  if (fields.label('checkpoint_id') !== checkpoint.id) throw damaged('the cut of another checkpoint');
  fields.string('word');
  return base;
}

function readMarks(fields) {
  for (const rollout of fields.members.keys()) {
    fields.integer(rollout, 0n, 999999999n);
    if (decodeKey(rollout).rollout !== rollout) throw damaged('a mark of something else than a rollout');
  }
  return fields.members;
}

function readState(fields) {
  const state = ours(fields.any('state'));
  if (fields.has('patches')) return patched(state, fields.any('patches'));
  if (depth(state) > 250) throw damaged('nested too deep');
  return state;
}

/** The members of a life's file. */
export function readLife(folder, name) {
  const { fields } = unseal(readFile(folder, name));
  const source = fields.any('source_checkpoint_id') === null ? null : fields.label('source_checkpoint_id');
  return { life: fields.integer('life'), source };
}

/** The records of one participant, in the order written. */
export function readParticipant(base, name, digest) {
  const folder = join(base, name);
  const { fields } = unseal(readFile(folder, 'manifest.json'), digest);
  checkFormat(fields);
  const participant = fields.object('participant');
  if (participant.string('name') !== name) throw damaged('the manifest of another participant');
  const segments = fields.array('segments').map((each) => readSegmentEntry(new Fields(each)));
  if (new Set(segments.map((each) => each.file)).size !== segments.length) throw damaged('a file twice');
  const index = fields.string('index', /^index-[0-9a-f]{64}\.json$/);
  const records = fields.integer('records');
  if (records !== segments.reduce((sum, each) => sum + each.records, 0n)) throw damaged('records are not the sum');
  const rows = readIndex(readFile(folder, index), index.slice(6, 70), records);
  rows.sort((a, b) => byNumber(a.segment, b.segment) || byNumber(a.offset, b.offset) || byNumber(a.start, b.start));
  const result = { kind: participant.label('kind'), checkpointId: fields.label('checkpoint_id'), records: [] };
  segments.forEach((segment, number) => {
    const own = rows.filter((row) => row.segment === BigInt(number));
    result.records.push(...readSegment(readSegmentFile(folder, segment), segment, own));
  });
  if (BigInt(result.records.length) !== records) throw damaged('rows outside the segments');
  if (new Set(result.records.map((each) => each.rollout)).size !== result.records.length) throw damaged('a rollout twice');
  return result;
}

const byNumber = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function readSegmentEntry(fields) {
  const file = fields.string('file', /^records-[0-9a-f]{64}\.jsonl(\.zst)?$/);
  const codec = fields.string('codec', /^(none|zstd)$/);
  if (file.endsWith('.zst') !== (codec === 'zstd')) throw damaged('codec and name of a file do not fit');
  const [stored, plain, records] = ['stored', 'plain', 'records'].map((name) => fields.integer(name, 1n));
  if (codec === 'none' && stored !== plain) throw damaged('sizes differ though nothing is compressed');
  return { file, codec, stored, plain, records };
}

function readSegmentFile(folder, segment) {
  const bytes = readFile(folder, segment.file);
  if (BigInt(bytes.length) !== segment.stored) throw damaged('a records file of another size');
  if (sha256(bytes) !== segment.file.slice(8, 72)) throw damaged('a records file was changed');
  return bytes;
}

/** The rows of an index, all of its bytes checked. */
function readIndex(bytes, digest, records) {
  const end = bytes.indexOf(10) + 1;
  const { fields } = unseal(bytes.subarray(0, end), digest);
  if (fields.integer('records') !== records) throw damaged('the index has another number of records');
  const blocks = fields.object('blocks');
  const [first, start] = [blocks.strings('first'), blocks.integers('start')];
  const [length, digests] = [blocks.integers('length', 1n), blocks.strings('sha256')];
  if (![start, length, digests].every((each) => each.length === first.length)) throw damaged('columns of the head');
  const rows = [];
  let at = end;
  first.forEach((key, number) => {
    const block = bytes.subarray(at, at + Number(length[number]));
    if (BigInt(block.length) !== length[number]) throw damaged('a block is cut short');
    if (start[number] !== BigInt(at - end) || sha256(block) !== digests[number]) throw damaged('a block was changed');
    if (block.indexOf(10) !== block.length - 1) throw damaged('a block is not one line');
    const own = readBlock(block);
    if (own[0].episode !== key) throw damaged('a block begins with another key');
    rows.push(...own);
    at += block.length;
  });
  if (at !== bytes.length) throw damaged('bytes after the blocks');
  if (BigInt(rows.length) !== records) throw damaged('the index has another number of rows');
  if (!rows.every((row, number) => number === 0 || rows[number - 1].episode < row.episode)) throw damaged('rows unsorted');
  return rows;
}

function readBlock(block) {
  const fields = new Fields(parse(block.subarray(0, -1), BODY_DEPTH));
  const columns = {
    episode: fields.strings('episode'),
    boundary: fields.array('boundary', (each) => each === null || (typeof each === 'bigint' && each >= 0n && each < 2n ** 63n)),
    crc32: fields.integers('crc32', 0n, 2n ** 32n - 1n),
  };
  for (const name of ['segment', 'offset', 'stored', 'start', 'length']) columns[name] = fields.integers(name);
  const count = columns.episode.length;
  if (count < 1 || count > BLOCK_ROWS) throw damaged('rows of a block');
  if (!Object.values(columns).every((column) => column.length === count)) throw damaged('columns of a block');
  return columns.episode.map((_, row) =>
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[row]])),
  );
}

function readSegment(bytes, segment, rows) {
  const records = [];
  let [at, total] = [0n, 0n];
  for (let next = 0; next < rows.length; ) {
    const { offset, stored } = rows[next];
    const frame = [];
    do frame.push(rows[next++]); while (next < rows.length && segment.codec === 'zstd' && rows[next].offset === offset);
    const size = frame.reduce((sum, row) => sum + row.length, 0n);
    if (offset !== at || stored < 1n || offset + stored > segment.stored) throw damaged('frames leave gaps or overlap');
    if (total + size > segment.plain) throw damaged('frames hold more than the segment');
    const data = bytes.subarray(Number(offset), Number(offset + stored));
    if (segment.codec === 'none' && size !== stored) throw damaged('a line is not its frame');
    const plain = segment.codec === 'none' ? data : Buffer.from(unpack(data, Number(size)));
    let start = 0n;
    for (const row of frame) {
      if (row.start !== start || row.stored !== stored) throw damaged('lines leave gaps or overlap');
      start += row.length;
      records.push(readRecord(plain.subarray(Number(row.start), Number(start)), row));
    }
    at += stored;
    total += size;
  }
  if (at !== segment.stored || total !== segment.plain) throw damaged('a segment is not covered');
  if (BigInt(rows.length) !== segment.records) throw damaged('a segment has another number of records');
  return records;
}

const INTEGER = '(?:0|[1-9][0-9]*)';
const STRING = '"(?:[^"\\\\\\x00-\\x1f]|\\\\(?:["\\\\btnfr]|u00[01][0-9a-f]))*"';
const HEAD = new RegExp(
  `^\\{"episode":"([^"\\\\]*)","boundary":(null|${INTEGER}),"schema":(${INTEGER})(?:,"references":(\\[${STRING}(?:,${STRING})*\\]))?`,
);

/** One record of a line, compared with its row. */
function readRecord(bytes, row) {
  if (crc32(bytes) !== Number(row.crc32) || bytes.indexOf(10) !== bytes.length - 1) throw damaged('a line was changed');
  const line = text(bytes);
  const head = HEAD.exec(line);
  if (head === null || !line.endsWith('}\n')) throw damaged('an envelope that no writer writes');
  const [episode, boundary, schema, listed] = head.slice(1);
  const numbers = [boundary, schema].map((each) => (each === 'null' ? null : BigInt(each)));
  if (numbers.some((each) => each !== null && each >= 2n ** 63n)) throw damaged('a number out of range');
  if (episode !== row.episode || numbers[0] !== row.boundary) throw damaged('not the record of the index');
  const references = listed === undefined ? [] : parse(Buffer.from(listed), 1);
  if (listed !== undefined && JSON.stringify(references) !== listed) throw damaged('references spelled otherwise');
  let rest = line.slice(head[0].length);
  let patches = null;
  if (rest.startsWith(',"patches":')) {
    rest = rest.slice(',"patches":'.length);
    const end = endOfBrackets(rest);
    patches = Buffer.from(rest.slice(0, end));
    rest = rest.slice(end);
  }
  if (!rest.startsWith(',"payload":')) throw damaged('no payload where it must be');
  const payload = readValue(Buffer.from(rest.slice(',"payload":'.length, -2)), patches);
  return { episode, ...decodeKey(episode), boundary: numbers[0], schema: numbers[1], references, payload };
}

/** Where the brackets are closed that the text begins with. */
function endOfBrackets(source) {
  let open = 0;
  for (const token of source.matchAll(/"(?:[^"\\]|\\.)*(?:"|$)|[[\]{}]/gs)) {
    if (token.index !== 0 && open === 0) break;
    if ('[{'.includes(token[0])) open += 1;
    else if (']}'.includes(token[0])) open -= 1;
    if (open === 0) return token.index + token[0].length;
  }
  throw damaged('patches that do not end');
}

const TABLE = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
