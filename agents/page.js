"use strict";
// Everything a model or a data set wrote reaches the page through textContent, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}
function options(select, names, chosen) {
  select.replaceChildren(...names.map((name, i) => Object.assign(make("option", name), {value: i, selected: i === chosen})));
}
