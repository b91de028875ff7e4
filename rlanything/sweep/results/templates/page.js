'use strict';
const dark = matchMedia('(prefers-color-scheme: dark)');
function look(isDark) {
  const [ink, line] = isDark ? ['#e6e6e6', '#3a3a3a'] : ['#1b1b1b', '#e6e6e6'];
  const axis = {gridcolor: line, linecolor: line};
  return {
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: {color: ink},
    template: {layout: {xaxis: axis, yaxis: axis}},
  };
}
function below(layout) {  // where there is little room, panels stand below each other
  if (innerWidth >= 700 || !layout.grid) return {};
  const panels = Object.keys(layout).filter(key => key.startsWith('xaxis')).length;
  return {grid: {...layout.grid, rows: panels, columns: 1}, height: 330 * panels};
}
const figures = Object.entries(JSON.parse(document.getElementById('data').textContent));
function draw(isDark) {
  for (const [name, {data, layout}] of figures) {
    Plotly.react(name, data, {...layout, ...look(isDark), ...below(layout)}, {responsive: true, displaylogo: false});
  }
}
draw(dark.matches);
dark.addEventListener('change', () => draw(dark.matches));
addEventListener('beforeprint', () => draw(false));
addEventListener('afterprint', () => draw(dark.matches));
