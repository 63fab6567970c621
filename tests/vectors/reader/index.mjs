import { digestOf } from './digest.mjs';
import { withFile } from './file.mjs';
import { decode, parse } from './json.mjs';
import { BLOCK_BYTES, BLOCK_ROWS, INDEX_FILE, INDEX_HEAD } from './limits.mjs';
import {
  isArrayOf, isBoundary, isCaptureKey, isDigestText, isObject, member, size, sizes,
} from './member.mjs';
import { episodeOf } from './name.mjs';
import { damaged } from './refusal.mjs';
import { unseal } from './seal.mjs';

const LF = 0x0a;
const FIRST_READ = 64 * 1024;
const NUMBERS = ['segment', 'offset', 'stored', 'start', 'length', 'crc32'];

// The rows of a participant's index, sorted by capture key as they stand.
export function readIndex(folder, manifest) {
  return withFile(`${folder}/${manifest.index.file}`, (file) => {
    if (file.size > INDEX_FILE) throw damaged(`${file.path}: larger than ${INDEX_FILE} bytes`);
    const { blocks, end } = readHead(file, manifest);
    if (end + sum(blocks, 'length') !== file.size) throw damaged(`${file.path}: does not end with its last block`);
    const rows = blocks.flatMap((block) => readBlock(file, end, block));
    checkRows(rows, manifest.records);
    return rows;
  });
}

// The row of one record, or undefined: only the head and the one block that can hold it are read.
export function findRow(folder, manifest, key) {
  return withFile(`${folder}/${manifest.index.file}`, (file) => {
    const { blocks, end } = readHead(file, manifest);
    const block = blocks.findLast(({ first }) => first <= key);
    return block && readBlock(file, end, block).find(({ episode }) => episode === key);
  });
}

// Where the blocks are, and where the head ends.
function readHead(file, manifest) {
  const end = headEnd(file);
  const sealed = unseal(file.read(0, end));
  if (sealed.digest !== manifest.index.digest) throw damaged(`${file.path}: another index than its name says`);
  const records = size(sealed.body, 'records');
  if (records !== manifest.records) throw damaged(`${file.path}: ${records} records`);
  const columns = member(sealed.body, 'blocks', isObject);
  const first = member(columns, 'first', isArrayOf(isCaptureKey));
  const start = sizes(columns, 'start');
  const length = sizes(columns, 'length');
  const sha256 = member(columns, 'sha256', isArrayOf(isDigestText));
  if ([start, length, sha256].some((column) => column.length !== first.length)) throw damaged('blocks of two lengths');
  const blocks = first.map((key, i) => ({ first: key, start: start[i], length: length[i], sha256: sha256[i] }));
  checkAscending(first);
  if (blocks.some((block, i) => block.start !== (i === 0 ? 0 : blocks[i - 1].start + blocks[i - 1].length))) {
    throw damaged('a gap between blocks');
  }
  return { blocks, end };
}

// Where the head's line ends, its line feed included.
function headEnd(file) {
  for (let length = FIRST_READ; ; length *= 4) {
    const bytes = file.read(0, Math.min(length, INDEX_HEAD, file.size));
    const end = bytes.indexOf(LF) + 1;
    if (end > 0) return end;
    if (bytes.length < length) throw damaged(`${file.path}: no head`);
  }
}

function readBlock(file, headLength, block) {
  if (block.length > BLOCK_BYTES) throw damaged(`a block of ${block.length} bytes`);
  const bytes = file.read(headLength + block.start, block.length);
  if (digestOf(bytes) !== block.sha256) throw damaged('a block has another digest');
  if (bytes.indexOf(LF) !== bytes.length - 1) throw damaged('a block is not one line');
  const rows = rowsOf(parse(decode(bytes)));
  checkAscending(rows.map(({ episode }) => episode));
  if (rows[0].episode !== block.first) throw damaged('a block starts with another key than its head says');
  return rows;
}

function rowsOf(columns) {
  if (!isObject(columns)) throw damaged('a block is no object');
  const episode = member(columns, 'episode', isArrayOf(isCaptureKey));
  const boundary = member(columns, 'boundary', isArrayOf(isBoundary));
  const numbers = NUMBERS.map((name) => sizes(columns, name));
  const count = episode.length;
  if (count < 1 || count > BLOCK_ROWS) throw damaged(`a block of ${count} rows`);
  if ([boundary, ...numbers].some((column) => column.length !== count)) throw damaged('columns of two lengths');
  return episode.map((key, i) => {
    const [segment, offset, stored, start, length, crc32] = numbers.map((column) => column[i]);
    return { episode: key, boundary: boundary[i], segment, offset, stored, start, length, crc32 };
  });
}

function checkRows(rows, records) {
  if (rows.length !== records) throw damaged(`${rows.length} rows, not ${records}`);
  const rollouts = new Set(rows.map((row) => episodeOf(row.episode).rollout));
  if (rollouts.size !== rows.length) throw damaged('a rollout twice in a participant');
  checkAscending(rows.map(({ episode }) => episode));
}

function checkAscending(keys) {
  for (let i = 1; i < keys.length; i += 1) {
    if (keys[i - 1] >= keys[i]) throw damaged('an index is not sorted by capture key');
  }
}

const sum = (items, name) => items.reduce((total, item) => total + item[name], 0);
