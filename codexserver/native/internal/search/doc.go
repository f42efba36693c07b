// Package search finds files by a few letters of their paths.
//
//	Files ──▶ walk (what .gitignore leaves) ──▶ pattern.match (score, places) ──▶ the best of each root
//
// A query is one or more words; each must occur in the path, letter by letter in order,
// and letters that are together, or at the beginning of a word or of a name, score
// higher. Small letters match both cases and letters without accents also those with; a
// word that has capitals or accents means them.
package search
