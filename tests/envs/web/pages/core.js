// As much of MiniWoB++'s core as pages of our own need.
var WOB_DONE_GLOBAL = false, WOB_RAW_REWARD_GLOBAL = 0;
Math.seedrandom = function (seed) {
  var state = 0;
  for (var i = 0; i < seed.length; i++) state = (state * 31 + seed.charCodeAt(i)) % 233280;
  Math.random = function () { state = (state * 9301 + 49297) % 233280; return state / 233280; };
};
var core = {
  startEpisode: function () {},
  startEpisodeReal: function () { WOB_DONE_GLOBAL = false; WOB_RAW_REWARD_GLOBAL = 0; genProblem(); },
  endEpisode: function (reward) { WOB_RAW_REWARD_GLOBAL = reward; WOB_DONE_GLOBAL = true; },
};
