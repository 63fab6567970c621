// Reads all vectors: each has to be as it was published, each valid one has to give what its twin says, and each invalid
// one has to be refused with the code of its twin.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { readCheckpoint } from './checkpoint.mjs';
import { decode, parse } from './json.mjs';
import { readLives } from './life.mjs';
import { Refusal } from './refusal.mjs';
import { findRecord } from './segment.mjs';
import { changedCases } from './sums.mjs';
import { plain, twinOf } from './twin.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const vectors = process.argv[2] ?? dirname(here);

const checkpointOf = (folder) => readCheckpoint(join(folder, 'checkpoint'));
const livesOf = (folder) => readLives(join(folder, 'lives'));

// What is wrong with a case, or null.
const PROBLEM_OF = {
  valid(folder, { about, ...twin }) {
    const checkpoint = checkpointOf(folder);
    if (!isDeepStrictEqual(twinOf(checkpoint, livesOf(folder)), twin)) return 'differs from its twin';
    return checkpoint.participants.every(findsEach) ? null : 'has a record that is another one when read by itself';
  },
  invalid(folder, { verify, lives = null }) {
    const [checkpoint, run] = [codeOf(() => checkpointOf(folder)), codeOf(() => livesOf(folder))];
    if (checkpoint !== verify) return `its checkpoint is ${checkpoint ?? 'read'} instead of ${verify ?? 'read'}`;
    return run === lives ? null : `its lives are ${run ?? 'read'} instead of ${lives ?? 'read'}`;
  },
};

function findsEach({ folder, manifest, records }) {
  const found = (key) => findRecord(folder, manifest, key);
  return records.every((record) => isDeepStrictEqual(found(record.episode), record))
    && ['0', 'nobody', 'zzz'].every((key) => found(key) === undefined || records.some(({ episode }) => episode === key));
}

// The code with which a call refuses, or null.
function codeOf(call) {
  try {
    call();
    return null;
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
}

function check(kind, name) {
  const folder = join(vectors, kind, name);
  try {
    return PROBLEM_OF[kind](folder, plain(parse(decode(readFileSync(join(folder, 'twin.json'))))));
  } catch (error) {
    return error.stack;
  }
}

// Whether there are cases of a kind, and all are as they have to be; says how many.
function checkAll(kind, done) {
  const root = join(vectors, kind);
  const names = existsSync(root) ? readdirSync(root).sort() : [];
  const problems = names.map((name) => [name, check(kind, name)]).filter(([, problem]) => problem !== null);
  for (const [name, problem] of problems) console.error(`${kind}/${name}: ${problem}`);
  console.log(`${kind}: ${names.length - problems.length} of ${names.length} ${done}`);
  return names.length > 0 && problems.length === 0;
}

const changed = changedCases(vectors, Object.keys(PROBLEM_OF));
for (const name of changed) console.error(`${name}: not as SHA256SUMS says`);
const good = [
  changed.length === 0,
  checkAll('valid', 'read as their twins say'),
  checkAll('invalid', 'refused as their twins say'),
];
process.exitCode = good.every(Boolean) ? 0 : 1;
