package terminal

import (
	"strings"
	"unicode"
)

// coming is a message that the model is writing.
type coming struct {
	all   strings.Builder
	shown int // bytes of it that are on the screen, or that wait in form
	form  markdown
}

// comingBlock is the key of the block of a message that is being written.
const comingBlock = "coming"

// piece shows the words that a piece of a message completes. It shows nothing of a message that
// may go to standard output.
func (v *view) piece(text string) {
	if v.hold {
		return
	}
	before := v.coming.all.Len()
	v.coming.all.WriteString(text)
	if i := strings.LastIndexFunc(text, begins); i >= 0 {
		v.reveal(v.coming.all.String(), before+i)
	}
}

// begins reports whether what comes before a character is complete. A language without spaces has
// wide letters.
func begins(r rune) bool {
	const wide = 0x2e80 // the first of them
	return r == ' ' || r == '\n' || r >= wide && !unicode.Is(unicode.M, r)
}

// reveal shows a message up to a byte, without empty lines at the end.
func (v *view) reveal(all string, end int) {
	text := strings.TrimRight(all[v.coming.shown:end], "\r\n")
	if strings.Trim(text, "\r\n") == "" {
		return
	}
	key := comingBlock
	if v.coming.shown == 0 {
		v.refused()
		key = ""
	}
	v.coming.shown += len(text)
	if v.open(key) {
		v.block = comingBlock
		if key != "" { // of an interrupted row
			text = strings.TrimPrefix(text, " ")
		}
		text = strings.TrimLeft(text, "\r\n")
	}
	v.s.flow(v.coming.form.show(v.s, showProse(text), false))
}

// arrived shows the rest of a message and reports whether its beginning was shown.
func (v *view) arrived(text string) bool {
	began := v.coming.shown > 0 && strings.HasPrefix(text, v.coming.all.String()[:v.coming.shown])
	if began {
		v.reveal(text, len(text))
	}
	v.whole()
	return began
}

// broken shows the rest of a message that ends early.
func (v *view) broken() {
	v.reveal(v.coming.all.String(), v.coming.all.Len())
	v.whole()
}

// whole ends the message that is being written.
func (v *view) whole() {
	if rest := v.coming.form.show(v.s, "", true); rest != "" {
		if v.open(comingBlock) {
			v.block = comingBlock
		}
		v.s.flow(rest)
	}
	v.coming = coming{}
	v.s.fresh()
}
