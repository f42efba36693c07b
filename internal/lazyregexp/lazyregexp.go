// Package lazyregexp compiles regular expressions when they are first needed. Nothing of
// them runs before main, so a program with many starts fast.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression. It is for variables of packages, and must not be copied.
type Regexp struct {
	// Text is the expression.
	Text string

	once sync.Once
	re   *regexp.Regexp
}

// Get returns the compiled expression. It panics if the text is not one.
func (r *Regexp) Get() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.Text) })
	return r.re
}
