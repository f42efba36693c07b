package web

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/webaddr"
)

// The bounds of a conversion. Links make a text longer than its page.
const (
	maxText   = 2 << 20 // bytes
	maxDepth  = 256     // elements in each other; deeper ones do not count
	maxIndent = 8       // levels of lists
)

// htmlText returns the text of an HTML page: headings, lists, code and the targets of links are
// written as in Markdown. What the page hides is left out. Whole is false if the text is longer
// than fits. Base is the address of the page. In XHTML an element may end where it begins.
func htmlText(page string, base webaddr.Address, xhtml bool) (text string, whole bool) {
	c := &converter{base: base, tokens: tokens{in: page}, xhtml: xhtml}
	for c.out.Len() < maxText {
		t, ok := c.tokens.next()
		if !ok {
			break
		}
		switch {
		case t.tag == "":
			c.text(html.UnescapeString(t.text))
		case t.end:
			within := isInside
			if k := kindOf(t.tag); k&isTable != 0 {
				within = 0
			} else if k&(isPart|isRow|isCell) != 0 {
				within = isTable
			}
			c.end(t.tag, 0, within)
		default:
			c.open(t)
		}
	}
	c.closeTo(0)
	text = c.out.String()
	return text[:min(len(text), maxText)], len(text) <= maxText
}

// converter writes the text of a page while it reads it.
type converter struct {
	tokens tokens
	base   webaddr.Address
	xhtml  bool

	stack  []element
	items  int  // open items of lists
	pres   int  // open elements pre
	titled bool // the title has been written

	out    strings.Builder
	pre    strings.Builder // the text of an element pre, which is written at its end
	breaks int             // line breaks before the next text: 0, 1 or 2
	space  bool            // before the next text, on its line
	fresh  bool            // a cell of a table has begun, and has no text yet
	lead   string          // at the beginning of the next text: of a list or a heading
	marks  string          // after that: of links and code that have begun
	indent int
}

// element is an open element.
type element struct {
	name   string
	kind   kind
	hidden bool // and all that it contains
	// opens and closes are written around the text of a link or of code.
	opens, closes string
	next          int // the number of a list's next item, -1 without numbers; the cells of a row
}

// open begins an element.
func (c *converter) open(t token) {
	k := kindOf(t.tag)
	if ended, within := implied(k); ended != 0 {
		c.end("", ended, within)
	}
	if k&(isApart|isLine) != 0 {
		c.end("", isP, isInside)
	}
	hidden := t.hidden || k&isDropped != 0 || c.hidden()
	if k&isRaw != 0 && !(c.xhtml && t.empty) {
		content := c.tokens.raw(t.tag)
		if t.tag == "title" && !hidden && !c.titled {
			c.titled = true
			c.text("Title: " + html.UnescapeString(content))
			c.lineBreaks(2)
		}
		return
	}
	if !hidden {
		c.begin(t, k)
	}
	if k&isVoid != 0 || c.xhtml && t.empty || len(c.stack) >= maxDepth {
		return
	}
	e := element{name: t.tag, kind: k, hidden: hidden, next: -1}
	if !hidden {
		c.enter(&e, t)
	}
	c.stack = append(c.stack, e)
}

// begin writes what is before the content of an element.
func (c *converter) begin(t token, k kind) {
	c.separate(k)
	switch {
	case t.tag == "br" && c.pres > 0:
		c.pre.WriteByte('\n')
	case t.tag == "br":
		c.lineBreaks(min(c.breaks+1, 2))
	case t.tag == "hr":
		c.text("---")
		c.lineBreaks(2)
	case t.tag == "img":
		if alt := strings.TrimSpace(html.UnescapeString(t.alt)); alt != "" {
			c.text("(image: " + alt + ")")
		}
	case k&isItem != 0:
		c.lead = "- "
		if list := c.inside(isList); list != nil && list.next >= 0 {
			c.lead = fmt.Sprintf("%d. ", list.next)
			list.next++
		}
	case k&isCell != 0 && c.pres == 0:
		row := c.inside(isRow)
		if row == nil {
			break
		}
		if row.next++; row.next > 0 {
			c.breaks, c.space = 0, c.out.Len() > 0
			c.alone("|")
			c.space = true
		}
		c.fresh = true
	}
}

// enter prepares the content of an element that is shown.
func (c *converter) enter(e *element, t token) {
	switch k := e.kind; {
	case k&isItem != 0:
		c.items++
		c.indent++
	case k&isDefinition != 0:
		c.indent++
	case k&isHeading != 0:
		c.lead += strings.Repeat("#", int(t.tag[1]-'0')) + " "
	case k&isPre != 0:
		c.pres++
	case t.tag == "ol":
		e.next = 1
		if n, err := strconv.Atoi(t.start); err == nil && n >= 0 && n < 1e6 {
			e.next = n
		}
	case k&isCode != 0 && c.pres == 0:
		e.opens, e.closes = "`", "`"
	case k&isLink != 0 && c.pres == 0 && t.href != "" && t.href[0] != '#':
		if to, err := c.base.Resolve(t.href); err == nil {
			e.opens, e.closes = "[", "]("+to.String()+")"
		}
	}
	c.marks += e.opens
}

// end closes the innermost element with a name or of a kind, and those in it, if none of the kind
// within is around it. Without one it does nothing.
func (c *converter) end(name string, k, within kind) {
	for i := len(c.stack) - 1; i >= 0; i-- {
		switch e := &c.stack[i]; {
		case e.kind&k != 0 || e.name == name:
			c.closeTo(i)
			return
		case e.kind&within != 0:
			return
		}
	}
}

// closeTo closes elements until there are n.
func (c *converter) closeTo(n int) {
	for len(c.stack) > n {
		e := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		if !e.hidden {
			c.finish(e)
		}
	}
}

// finish writes what is after the content of an element that is shown.
func (c *converter) finish(e element) {
	if rest, unused := strings.CutSuffix(c.marks, e.opens); unused {
		c.marks = rest // also if it opens nothing
	} else {
		c.out.WriteString(e.closes)
	}
	switch k := e.kind; {
	case k&isItem != 0:
		c.items--
		c.indent--
		c.lead = ""
	case k&isDefinition != 0:
		c.indent--
	case k&isHeading != 0:
		c.lead = strings.TrimSuffix(c.lead, strings.Repeat("#", int(e.name[1]-'0'))+" ")
	case k&isPre != 0:
		if c.pres--; c.pres == 0 {
			c.writePre()
		}
	case k&isCell != 0 && c.pres == 0:
		c.breaks, c.space, c.fresh = 0, true, false // a paragraph in the cell may have ended before
	}
	c.separate(e.kind)
}

// separate demands the line breaks around an element.
func (c *converter) separate(k kind) {
	switch {
	case k&isLine != 0, k&isList != 0 && c.items > 0:
		c.lineBreaks(1)
	case k&isApart != 0:
		c.lineBreaks(2)
	}
}

// hidden reports whether the page does not show the current element.
func (c *converter) hidden() bool { return len(c.stack) > 0 && c.stack[len(c.stack)-1].hidden }

// inside returns the innermost open element of a kind, or nil.
func (c *converter) inside(k kind) *element {
	for i := range slices.Backward(c.stack) {
		if c.stack[i].kind&k != 0 {
			return &c.stack[i]
		}
	}
	return nil
}

// lineBreaks demands line breaks before the next text.
func (c *converter) lineBreaks(n int) {
	if c.pres == 0 && !c.fresh {
		c.breaks = max(c.breaks, n)
	}
}

// text writes a text, with its white space collapsed outside of pre.
func (c *converter) text(s string) {
	switch {
	case c.hidden():
		return
	case c.pres > 0:
		if c.pre.Len() < maxText {
			c.pre.WriteString(s)
		}
		return
	}
	for s != "" {
		n := strings.IndexFunc(s, unicode.IsSpace)
		switch {
		case n == 0:
			c.space = true
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
			continue
		case n < 0:
			n = len(s)
		}
		c.write(s[:n])
		s = s[n:]
	}
}

// write writes a word after the breaks, the space and the marks that are due.
func (c *converter) write(word string) {
	switch {
	case c.out.Len() > 0 && c.breaks > 0:
		c.out.WriteString("\n\n"[:c.breaks])
	case c.out.Len() > 0 && c.space:
		c.out.WriteByte(' ')
	}
	if c.out.Len() == 0 || c.breaks > 0 {
		level := c.indent
		if c.lead != "" && c.lead[0] != '#' {
			level-- // of its own item
		}
		c.out.WriteString(strings.Repeat("  ", max(0, min(level, maxIndent))))
	}
	c.out.WriteString(c.lead)
	c.out.WriteString(c.marks)
	c.out.WriteString(word)
	c.breaks, c.space, c.fresh, c.lead, c.marks = 0, false, false, "", ""
}

// alone writes a text that links and code that have begun do not contain.
func (c *converter) alone(text string) {
	marks := c.marks
	c.marks = ""
	c.write(text)
	c.marks = marks
}

// writePre writes the text of an element pre as a block of code.
func (c *converter) writePre() {
	text := strings.Trim(c.pre.String(), "\r\n")
	c.pre.Reset()
	if strings.TrimSpace(text) == "" {
		return
	}
	longest, run := 2, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	c.alone(fence + "\n" + text + "\n" + fence)
}
