package web

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/webaddr"
	"github.com/google/go-cmp/cmp"
)

func at(t testing.TB, text string) webaddr.Address {
	t.Helper()
	a, err := webaddr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestHTMLText(t *testing.T) {
	for _, tt := range []struct{ name, html, want string }{
		{"empty", "", ""},
		{"text", "a  b\n c", "a b c"},
		{"a title", "<html><head><title>The  page</title><meta charset=utf-8></head><body><p>x", "Title: The page\n\nx"},
		{"only the first title", "<title>a</title><svg><title>b</title></svg><title>c</title>", "Title: a"},
		{"headings", "<h1>A</h1>b<h3>C</h3><p>d", "# A\n\nb\n\n### C\n\nd"},
		{"an empty heading", "<h2></h2>b", "b"},
		{"paragraphs without ends", "<p>a<p>b<div>c</div>d", "a\n\nb\n\nc\nd"},
		{"line breaks", "a<br>b<br/><br>c<br><br><br><br>d", "a\nb\n\nc\n\nd"},
		{"a rule", "a<hr>b", "a\n\n---\n\nb"},
		{"links", `see <a href="x.html">the page</a>, <a href='/y?q=1&amp;r=2#f'> other </a>.`, "see [the page](https://example.com/dir/x.html), [other](https://example.com/y?q=1&r=2) ."},
		{"links without a place", `<a href="#top">up</a> <a name=x>here</a> <a href="javascript:alert(1)">run</a> <a href="mailto:a@b.c">write</a> <a href="https://u:p@b.c/">sign in</a>`, "up here run write sign in"},
		{"a link without text", `a <a href="x"><img src=y></a> b`, "a b"},
		{"a link around a heading", `<a href="x"><h3>A</h3></a>b`, "### [A](https://example.com/dir/x)\n\nb"},
		{"a link in a link", `<a href="x">a<a href="y">b</a>`, "[a](https://example.com/dir/x)[b](https://example.com/dir/y)"},
		{"a link that is not closed", `<p><a href="x">a<p>b`, "[a](https://example.com/dir/x)\n\nb"},
		{"an image", `<img alt="A &amp; B" src=x><img alt="">`, "(image: A & B)"},
		{"lists", "<ul><li>a<li>b <ul><li>c</li></ul><li>d</ul><ol start=3><li>e<li><p>f</p><p>g</p></ol>h", "- a\n- b\n  - c\n- d\n\n3. e\n\n4. f\n\n  g\n\nh"},
		{"an empty item", "<ul><li></li><li>b</li></ul>", "- b"},
		{"definitions", "<dl><dt>f()<dd>Does it.<dt>g()<dd><p>Too.</dl>", "f()\n  Does it.\ng()\n\n  Too."},
		{"a table", "<table><thead><tr><th>a<th>b</thead><tr><td><p>1</p></td><td></td><td>2</td></tr></table>x", "a | b\n1 | | 2\n\nx"},
		{"a table in a table", "<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>", "a\n\nb | c | d"},
		{"code", "use <code>a &lt; b</code> or <kbd>x</kbd><code></code>", "use `a < b` or `x`"},
		{"a block of code", "a<pre><code>if <b>x</b> {\n\ty()\n}\n</code></pre>b", "a\n\n```\nif x {\n\ty()\n}\n```\n\nb"},
		{"a fence in it", "<pre>```\n````</pre>", "`````\n```\n````\n`````"},
		{"line breaks in it", "<pre>a<br>b<div>c</div></pre>", "```\na\nbc\n```"},
		{"one that is not closed", "<p>a<pre>b\nc", "a\n\n```\nb\nc\n```"},
		{"one in a list", "<ul><li><pre>a</pre></ul>", "- ```\na\n```"},
		{"scripts and styles", "a<script>if (a < b) '</p>'; x='<script>'</script><style>p{}</style >b<noscript>c</noscript><template><p>d</template>e", "abe"},
		{"a script that is not closed", "a<script>b</scriptx>c", "a"},
		{"comments", "a<!-- <p>x -- > --><!-->b<!--->c<!DOCTYPE x><?y?></ z>d<![CDATA[e]]>f", "abcdf"},
		{"a comment that is not closed", "a<!-- b", "a"},
		{"hidden", `a<span hidden>b</span><div style="Display : NONE"><p>c<div>d</div></div><i aria-hidden=true>e</i><b style="opacity:0">f</b><b style="opacity:0.5">g</b><p style='font-size:0'>h<p>i`, "ag\n\ni"},
		{"hidden links and lists", `<ul hidden><li><a href=x>a</a></ul><ol><li>b</ol>`, "1. b"},
		{"an end without a beginning", "a</p></div></li></table></b>b", "ab"},
		{"an end in a cell", "<div><table><tr><td>a</div>b</table>c</div>", "ab\n\nc"},
		{"ends in another order", "<b><i>a</b>b</i><ul><li><b>c</ul>d", "ab\n\n- c\n\nd"},
		{"no tags", "1 < 2 <3 a<>b & c &amp; d &#x41; &unknown; &#0; &nbsp;e <", "1 < 2 <3 a<>b & c & d A &unknown; \uFFFD e <"},
		{"a tag that is not closed", "a<p title='x>b", "a"},
		{"attributes", `<a/href="x"class=y href=z =q>a</a><a HREF = x>b</a>`, "[a](https://example.com/dir/x)[b](https://example.com/dir/x)"},
		{"capitals", "<P>a</P><SCRIPT>b</Script>c", "a\n\nc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, whole := htmlText(tt.html, at(t, "https://example.com/dir/page.html"), false)
			if diff := cmp.Diff(tt.want, got); diff != "" || !whole {
				t.Errorf("whole %t (-want +got)\n%s", whole, diff)
			}
		})
	}
	if got, _ := htmlText(`<title/><a id="x"/>b<script src="y"/><p>c</p>`, at(t, "example.com"), true); got != "b\n\nc" {
		t.Errorf("XHTML: %q", got)
	}
}

// TestHTMLBounds has more elements in each other than count, and more levels of lists than are
// indented.
func TestHTMLBounds(t *testing.T) {
	base := at(t, "example.com")
	for depth, want := range map[int]string{255: "x", 256: "x", 257: "y\nx"} { // what counts hides what it contains
		page := strings.Repeat("<div>", depth-1) + "<div hidden> y</div>x"
		if got, whole := htmlText(page, base, false); got != want || !whole {
			t.Errorf("%d elements: %q, want %q", depth, got, want)
		}
	}
	deep := func(levels int) string {
		got, _ := htmlText(strings.Repeat("<ul><li>", levels)+"x", base, false)
		return got
	}
	for levels, want := range map[int]int{8: 14, 9: 16, 10: 16} {
		if got := deep(levels); got != strings.Repeat(" ", want)+"- x" {
			t.Errorf("%d lists: %q", levels, got)
		}
	}
	long := strings.Repeat("<a href=x>y</a>", 1<<20/15)
	text, whole := htmlText(long, at(t, "https://example.com/"+strings.Repeat("d/", 100)), false)
	if len(text) != 2<<20 || whole {
		t.Errorf("%d bytes, %t", len(text), whole)
	}
}

// TestHTMLCost converts the largest pages that are made to be slow. Each must end long before
// the test's own limit; the bound of the text holds.
func TestHTMLCost(t *testing.T) {
	base := at(t, "https://example.com/"+strings.Repeat("d/", 450))
	size := maxBody
	if testing.Short() {
		size /= 16
	}
	for name, unit := range map[string]string{
		"open": "<div>", "stray": "<p></b>", "deep end": "</b>", "links": "<a href=x>y", "ticks": "`", "cells": "<td>x", "references": "&amp", "items": "<li>x",
		"angles": "<", "quotes": "<a b='", "comments": "<!-", "rows": "<tr><td>", "titles": "<title></titlex>", "marks": "<code>", "headings": "<h6>", "paragraphs": "<p>x", "names": "<a b c d e f>", "raw": "</", "pre": "<pre>x",
	} {
		t.Run(name, func(t *testing.T) {
			page := strings.Repeat("<b><p><table><ul>", 20) + strings.Repeat("<div>", 300) + strings.Repeat(unit, size/len(unit))
			begin := time.Now()
			text, _ := htmlText(page, base, false)
			t.Logf("%v, %d bytes", time.Since(begin), len(text))
			if len(text) > maxText {
				t.Errorf("%d bytes", len(text))
			}
		})
	}
}

func FuzzHTML(f *testing.F) {
	f.Add("<h1>a</h1><ul><li><a href=x>b</a></ul>")
	f.Add("<table><tr><td><pre>a<br>`b`</pre></table><p hidden>c")
	f.Add("<!--><script></script><a href='\n//h\\'><code>&#x202e;&lt;")
	f.Fuzz(func(t *testing.T, page string) {
		text, whole := htmlText(strings.ToValidUTF8(page, "?"), at(t, "https://example.com/"), false)
		if !whole && len(text) < maxText {
			t.Errorf("%d bytes are not whole", len(text))
		}
		if !utf8.ValidString(text) && whole {
			t.Errorf("invalid UTF-8: %q", text)
		}
		shown, _ := clean(text)
		if again, dropped := clean(shown); again != shown || dropped != 0 {
			t.Errorf("cleaning twice differs: %q", shown)
		}
	})
}
