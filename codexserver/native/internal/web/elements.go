package web

// kind says what an element is for the text of a page, as a set.
type kind uint32

const (
	isVoid    kind = 1 << iota // has no content and no end tag
	isRaw                      // has no tags in it, and is not shown
	isDropped                  // is not shown
	isApart                    // has an empty line around it
	isLine                     // begins and ends a line
	isP
	isPre
	isCode
	isHeading
	isLink
	isList
	isItem
	isTerms // of a list of definitions
	isTerm
	isDefinition
	isTable
	isPart // of a table
	isRow
	isCell
)

// isInside bounds what an end tag, or an end that is implied, can close.
const isInside = isTable | isCell

func kindOf(name string) kind {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		if name == "hr" {
			return isVoid | isApart
		}
		return isVoid
	case "script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea":
		return isRaw
	case "audio", "button", "canvas", "datalist", "noscript", "object", "select", "svg", "template", "video":
		return isDropped
	case "article", "aside", "blockquote", "details", "fieldset", "figure", "footer", "form", "header", "main", "nav", "section":
		return isApart
	case "address", "center", "dialog", "dir", "div", "figcaption", "legend", "option", "summary":
		return isLine
	case "p":
		return isApart | isP
	case "pre":
		return isApart | isPre
	case "code", "kbd", "samp", "tt":
		return isCode
	case "h1", "h2", "h3", "h4", "h5", "h6":
		return isApart | isHeading
	case "a":
		return isLink
	case "ul", "ol", "menu":
		return isApart | isList
	case "li":
		return isLine | isItem
	case "dl":
		return isApart | isTerms
	case "dt":
		return isLine | isTerm
	case "dd":
		return isLine | isTerm | isDefinition
	case "table":
		return isApart | isTable
	case "thead", "tbody", "tfoot", "caption":
		return isLine | isPart
	case "tr":
		return isLine | isRow
	case "td", "th":
		return isCell
	}
	return 0
}

// implied returns what ends where an element of a kind begins, and within what.
func implied(k kind) (ended, within kind) {
	switch {
	case k&isItem != 0:
		return isItem, isList | isInside
	case k&isTerm != 0:
		return isTerm, isTerms | isInside
	case k&isCell != 0:
		return isCell, isRow | isTable
	case k&isRow != 0:
		return isRow, isTable
	case k&isPart != 0:
		return isPart, isTable
	case k&isLink != 0:
		return isLink, isInside
	}
	return 0, 0
}
