import { CHECKPOINT_FILE, SMALL_FILE } from './limits.mjs';
import {
  isArrayOf, isCaptureKey, isDigestText, isInteger, isLabelText, isObject, isString, member,
} from './member.mjs';
import { isCut, isParticipant, isRollout } from './name.mjs';
import { readParticipant } from './participant.mjs';
import { patched } from './patch.mjs';
import { isPatches } from './record.mjs';
import { damaged } from './refusal.mjs';
import { checkFormat, readSealed } from './seal.mjs';

const LARGEST_ATTEMPT = 999_999_999n;

// All that a checkpoint holds, proved.
export function readCheckpoint(folder) {
  const { body } = readSealed(`${folder}/checkpoint.json`, CHECKPOINT_FILE);
  checkFormat(body);
  const checkpointId = member(body, 'checkpoint_id', isLabelText);
  const sequence = member(body, 'sequence', isInteger);
  const cut = cutOf(member(body, 'cut', (value) => value === null || isObject(value)));
  const named = participantsOf(member(body, 'participants', isObject));
  const episodes = keysOf(body, 'episodes');
  const restarts = keysOf(body, 'restarts');
  if (restarts.some((key) => episodes.includes(key))) throw damaged('a restart that is an episode too');
  const marks = marksOf(member(body, 'marks', isObject));
  const state = stateOf(body);
  const word = cut === null ? null : readCut(folder, cut, checkpointId);
  const place = cut === null ? folder : `${folder}/${cut.name}`;
  const participants = named.map((participant) => (
    readParticipant(`${place}/${participant.name}`, participant, checkpointId)
  ));
  checkEpisodes(episodes, participants);
  return { checkpointId, sequence, cut, word, participants, episodes, restarts, marks, state };
}

function cutOf(object) {
  if (object === null) return null;
  const name = member(object, 'name', (value) => isString(value) && isCut(value));
  return { name, sha256: member(object, 'sha256', isDigestText) };
}

// The random word of the cut.
function readCut(folder, cut, checkpointId) {
  const path = `${folder}/${cut.name}/cut.json`;
  const { digest, body } = readSealed(path, SMALL_FILE);
  if (digest !== cut.sha256) throw damaged(`${path}: another cut than the checkpoint names`);
  if (member(body, 'checkpoint_id', isLabelText) !== checkpointId) throw damaged(`${path}: of another checkpoint`);
  return member(body, 'word', isString);
}

function participantsOf(object) {
  const lower = new Set();
  return object.entries().map(([name, value]) => {
    if (!isParticipant(name) || !isObject(value)) throw damaged(`no participant: ${name}`);
    if (lower.has(name.toLowerCase())) throw damaged(`two participants ${name}, but for case`);
    lower.add(name.toLowerCase());
    return { name, kind: member(value, 'kind', isLabelText), manifest: member(value, 'manifest', isDigestText) };
  });
}

function keysOf(body, name) {
  const keys = member(body, name, isArrayOf(isCaptureKey));
  for (let i = 1; i < keys.length; i += 1) {
    if (keys[i - 1] >= keys[i]) throw damaged(`${name} are not sorted`);
  }
  return keys;
}

function marksOf(object) {
  for (const [rollout, attempt] of object.entries()) {
    if (!isRollout(rollout)) throw damaged(`a mark of ${rollout}, which is no rollout`);
    if (!isInteger(attempt) || attempt > LARGEST_ATTEMPT) throw damaged(`a mark of ${rollout} that is no attempt`);
  }
  return object.entries();
}

function stateOf(body) {
  const state = member(body, 'state', () => true);
  return patched(state, body.has('patches') ? member(body, 'patches', isPatches) : []);
}

function checkEpisodes(episodes, participants) {
  const held = new Set(participants.flatMap(({ records }) => records.map((record) => record.episode)));
  if (held.size !== episodes.length || !episodes.every((key) => held.has(key))) {
    throw damaged('the episodes are not those that the participants hold');
  }
}
