'use strict';
// One rollout, step by step: what was seen and done, the votes on it, the reward and what trained.
const VERDICTS = new Map([[1, ['good', '+ good']], [-1, ['bad', '− bad']], [null, ['invalid', '? no verdict']]]);
const SHORT = 90;
const MARK = /<\/?\|?[a-zA-Z_]{1,24}\|?>/g;   // as in rlanything/view/words.py

function drawRollout(place, index, group, rollout) {
  place.replaceChildren();
  const [sign, cls, name] = outcomeOf(rollout.outcome, rollout.status);
  const title = add(place, 'h2', 'Rollout ' + rollout.rollout + ' ');
  add(title, 'span', sign + ' ' + name, cls);
  const facts = [rollout.status, count(rollout.steps.length, 'step')];
  facts.push(rollout.trains_policy ? 'trains the policy' : 'does not train the policy: ' + rollout.why_not);
  add(place, 'p', facts.join('; '), 'quiet');
  if (rollout.error) addText(place, 'pre', rollout.error, 'crashed');
  drawNote(place, index, spotIn(group, rollout, null));
  add(place, 'h3', 'First observation');
  addText(place, 'div', rollout.first_observation, 'said');
  rollout.steps.forEach((step, k) => drawStep(place, index, group, rollout, step, k));
  const last = rollout.steps.length;
  if (rollout.screens) drawPictures(place, rollout.screens[last], last ? 'after the last step' : 'first', null);
}

function drawStep(place, index, group, rollout, step, k) {
  const part = add(place, 'section', null, 'step');
  part.id = 'step-' + k;
  part.tabIndex = -1;
  link(add(part, 'h3'), {t: k}, 'Step ' + k);
  if (rollout.screens) drawPictures(part, rollout.screens[k], 'before step ' + k, step.point);
  addText(part, 'pre', step.action, 'action');
  if (!step.valid) add(part, 'p', 'The reply holds no valid action:', 'crashed');
  if (!step.valid && step.response) addText(part, 'pre', step.response);
  if (step.valid) drawReply(part, step.response, step.action);
  if (step.commands && step.commands.length) {
    addFold(part, count(step.commands.length, 'admissible command'), fold => {
      const list = add(fold, 'ul', null, 'commands');
      for (const command of step.commands) addText(list, 'li', command, command === step.action ? 'taken' : '');
    });
  }
  if (step.observation) addText(part, 'div', step.observation, 'said');
  if ('good' in step) add(part, 'p', 'The environment: ' + (step.good ? 'good' : 'bad') + ' (' + step.reason + ')', 'oracle');
  if (step.votes) drawVotes(part, step);
  drawReward(part, index, rollout, step);
  drawNote(part, index, spotIn(group, rollout, k));
  addFold(part, 'Tokens and log-probs', fold => { drawTokens(fold, group, rollout, k).catch(tell); }, 'tokens');
}

// The whole reply, where it says more than what was read from it. It is open where the search finds something in it.
function drawReply(place, reply, read) {
  const said = (reply || '').replaceAll(MARK, ' ').trim();
  if (!said || said === (read || '').trim()) return;
  const open = wordsOf(said).some(known => state.words.some(word => begins(known, word)));
  addFold(place, 'Whole reply', fold => addText(fold, 'pre', reply), 'reply', open);
}

function spotIn(group, rollout, step) {
  return {iteration: state.i, slot: group.slot, rewrite: Number(group.proposal), rollout: rollout.rollout, step};
}

function drawVotes(place, step) {
  const line = add(place, 'div', null, 'votes');
  for (const vote of step.votes) {
    const [cls, name] = VERDICTS.get(vote.verdict);
    const said = vote.reason || (vote.verdict === null ? vote.reply : '') || '';
    const against = 'good' in step && vote.verdict !== null && (vote.verdict > 0) !== step.good;
    const short = said.length > SHORT ? said.slice(0, SHORT) + '…' : said;
    const chip = addFold(line, null, fold => {
      if (said.length > SHORT) addText(fold, 'pre', said);
      const trains = vote.trains ? 'trains the reward model: advantage ' + signed(vote.advantage) + ', weight ' + share(vote.weight) : 'does not train the reward model';
      drawReply(fold, said === vote.reply ? '' : vote.reply, said);
      add(fold, 'p', trains + (against ? '; the environment says the opposite' : ''));
    }, 'vote ' + cls);
    const summary = chip.querySelector('summary');
    add(summary, 'b', name + (against ? ' ≠ environment' : ''));
    addText(summary, 'span', short ? ' ' + short : '');
  }
}

function drawReward(place, index, rollout, step) {
  const line = add(place, 'p', null, 'reward');
  if ('mean_vote' in step) {
    const outcome = index.uses_outcome ? signed(rollout.outcome, 0) : '0 (this arm leaves the outcome out)';
    add(line, 'span', 'R = O + λ × mean vote = ' + outcome + ' + ' + index.lambda + ' × ' + signed(step.mean_vote) + ' = ' + signed(step.reward));
  } else {
    add(line, 'span', 'R = ' + signed(step.reward));
  }
  if ('consistency_reward' in step && step.consistency_reward !== step.reward) {
    add(line, 'span', ' (' + signed(step.consistency_reward) + ' where votes are scored)');
  }
  const trained = step.advantage === null ? 'no advantage: it does not train' : 'advantage ' + signed(step.advantage);
  add(line, 'span', ', ' + trained, step.advantage === null ? '' : step.advantage < 0 ? 'failed' : 'solved');
}

async function drawTokens(fold, group, rollout, k) {
  const {rollouts, texts} = await part('tokens/' + state.i);
  const found = rollouts[group.slot + '/' + Number(group.proposal) + '/' + rollout.rollout];
  const step = found.steps[k];
  if (step.prompt !== null) {
    add(fold, 'div', 'read, ' + count(step.read, 'token') + ' in all; new in this step:', 'quiet');
    addText(fold, 'pre', step.prompt);
  }
  drawSampled(fold, 'wrote', step, texts.policy, step.allowed);
  (found.votes[k] || []).forEach((vote, j) => drawSampled(fold, 'vote ' + j, vote, texts.reward, []));
}

function drawSampled(place, name, sampled, texts, allowed) {
  if (!sampled.logprobs.length) return;
  const sum = sampled.logprobs.includes(null) ? null : sampled.logprobs.reduce((total, value) => total + value, 0);
  add(place, 'div', name + ', ' + count(sampled.ids.length, 'token') + ', log-prob ' + signed(sum), 'quiet');
  const line = add(place, 'div', null, 'sampled');
  sampled.ids.forEach((id, k) => {
    const token = add(line, 'span', null, 'token ' + (sampled.logprobs[k] === null || sampled.logprobs[k] < -2 ? 'rare' : sampled.logprobs[k] < -0.5 ? 'some' : 'sure'));
    add(token, 'code', texts[id] === null ? 'id ' + id : (texts[id] || '').replaceAll('\n', '\u240a'));
    add(token, 'small', signed(sampled.logprobs[k], 2));
    token.title = 'id ' + id + (allowed[k] ? ', one of ' + allowed[k] + ' allowed' : '');
  });
}
