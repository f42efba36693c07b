package terminal

import "strings"

// coming is a message that the model is writing.
type coming struct {
	all   strings.Builder
	shown int // bytes of it that are on the screen
}

// comingBlock is the key of the block of a message that is being written.
const comingBlock = "coming"

// piece shows the lines that a piece of a message completes. It shows nothing of a message that
// may go to standard output.
func (v *view) piece(text string) {
	if v.hold {
		return
	}
	v.coming.all.WriteString(text)
	if strings.Contains(text, "\n") {
		all := v.coming.all.String()
		v.reveal(all, strings.LastIndexByte(all, '\n'))
	}
}

// reveal shows a message up to a byte, without empty lines at the end.
func (v *view) reveal(all string, end int) {
	text := strings.TrimRight(all[v.coming.shown:end], "\r\n")
	end = v.coming.shown + len(text)
	if strings.Trim(text, "\r\n") == "" {
		return
	}
	key := comingBlock
	if v.coming.shown == 0 {
		v.refused()
		key = ""
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "\r"), "\n") // the end of the last line
	if v.open(key) {
		v.block = comingBlock
		text = strings.TrimLeft(text, "\r\n")
	}
	for _, line := range lines(showProse(text)) {
		v.s.line("", plain, line)
	}
	v.coming.shown = end
}

// arrived shows the rest of a message and reports whether its beginning was shown.
func (v *view) arrived(text string) bool {
	began := v.coming.shown > 0 && strings.HasPrefix(text, v.coming.all.String()[:v.coming.shown])
	if began {
		v.reveal(text, len(text))
	}
	v.coming = coming{}
	return began
}

// broken shows the rest of a message that ends early.
func (v *view) broken() {
	v.reveal(v.coming.all.String(), v.coming.all.Len())
	v.coming = coming{}
}
