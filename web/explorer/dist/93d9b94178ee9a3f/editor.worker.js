import{a}from"./chunk-FXUNZXGF.js";import"./chunk-BHPJHC4L.js";import"./chunk-Z26JNEXF.js";import"./chunk-RXICNHFY.js";import"./chunk-X442RVO2.js";import"./chunk-4L5RI3VG.js";export{a as initialize};
