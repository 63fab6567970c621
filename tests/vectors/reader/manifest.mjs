import { SMALL_FILE } from './limits.mjs';
import { isArrayOf, isLabelText, isObject, isPositive, isString, member, size } from './member.mjs';
import { isParticipant } from './name.mjs';
import { damaged } from './refusal.mjs';
import { checkFormat, readSealed } from './seal.mjs';

const SUFFIXES = new Map([['none', '.jsonl'], ['zstd', '.jsonl.zst']]);
const INDEX = /^index-([0-9a-f]{64})\.json$/;

export function readManifest(folder, digest) {
  const path = `${folder}/manifest.json`;
  const sealed = readSealed(path, SMALL_FILE);
  if (sealed.digest !== digest) throw damaged(`${path}: another manifest than the checkpoint names`);
  const { body } = sealed;
  checkFormat(body);
  const participant = member(body, 'participant', isObject);
  const segments = member(body, 'segments', isArrayOf(isObject)).map(segmentOf);
  const records = size(body, 'records');
  if (segments.reduce((sum, segment) => sum + segment.records, 0) !== records) {
    throw damaged(`${path}: the records of the segments are not ${records}`);
  }
  const index = member(body, 'index', (value) => isString(value) && INDEX.test(value));
  return {
    checkpointId: member(body, 'checkpoint_id', isLabelText),
    name: member(participant, 'name', (value) => isString(value) && isParticipant(value)),
    kind: member(participant, 'kind', isLabelText),
    segments,
    index: { file: index, digest: INDEX.exec(index)[1] },
    records,
  };
}

function segmentOf(object) {
  const codec = member(object, 'codec', (value) => SUFFIXES.has(value));
  const file = member(object, 'file', isString);
  const digest = file.slice('records-'.length, 'records-'.length + 64);
  if (!/^[0-9a-f]{64}$/.test(digest) || file !== `records-${digest}${SUFFIXES.get(codec)}`) {
    throw damaged('no name of a segment');
  }
  const stored = size(object, 'stored', isPositive);
  const plain = size(object, 'plain', isPositive);
  if (codec === 'none' && stored !== plain) throw damaged('a segment is not stored as it is');
  return { file, digest, codec, stored, plain, records: size(object, 'records', isPositive) };
}
