// Package search finds files by a few letters of their paths.
//
//	Files ──▶ walk (what .gitignore leaves) ──▶ pattern.match (score, places) ──▶ the best of each root
//
// A query is one or more words. The letters of each word must occur in the path in order.
// Letters that are together, or at the beginning of a word or of a name, score higher. A
// word without capitals ignores case, and a word without accents ignores accents.
package search
