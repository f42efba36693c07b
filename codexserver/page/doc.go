// Package page is a web page on which a user sees what the agent does and answers its
// questions. It is an [approval.Desk]:
//
//	p, err := page.Listen(nil) // 127.0.0.1, any free port
//	if err != nil { … }
//	defer p.Close()
//	fmt.Fprintln(os.Stderr, "approvals:", p.Link())
//	err = codexserver.New(e, &codexserver.Options{Desk: p}).Serve(ctx, transport)
//
// A browser gets all that the page shows when it connects, and the changes afterwards: the open questions, and
// the last lines of each conversation's log. What a running turn does and prints, it gets once a second. One that
// reads slowly gets fewer and larger changes and delays no other. Package elicit makes hidden characters visible
// before text is sent, and the page shows it as text: no word of an agent, a command or a file becomes markup.
//
// # Who has access
//
// The server listens only on 127.0.0.1. A link from [Page.Link] opens the page once. Its
// secret is in the fragment, which browsers do not send. The page exchanges the secret
// for a token, which stays in the tab's sessionStorage and is sent with every request.
// There are no cookies, because browsers send them to every port of a host.
//
// A request is refused, and changes nothing, if it has
//
//   - a Host other than the listener's and that of Options.Origin, as after DNS
//     rebinding (403); headers of proxies do not count;
//   - an Origin other than that of its Host, a Sec-Fetch-Site of another page, or is
//     a POST without Origin (403);
//   - no token, or an unknown one (401);
//   - another method (405), or a body that is not exactly the JSON of the
//     route (400).
//
// No answer has a CORS header. The page's Content-Security-Policy allows only its own
// script, style and requests, and no frames.
//
// The page does not protect against a program of the same user that reads an unused link
// where it was printed, or the browser's memory. A script that another server on the same
// port left in the browser before can act as the page too; the default port, any free
// one, makes that unlikely.
//
// # Answers
//
// The browser posts an MCP ElicitResult. The page checks its shape and passes it on;
// package elicit reads it as it reads a client's. One answer counts. A second one, or one
// to a question that was answered elsewhere, gets 409 with the decision.
//
// # Bounds
//
// The page keeps 32 conversations and 64 open questions of up to 4 MiB and 2,000 files each, 32 MiB
// together. They are never cut, because an approval needs the whole question. It keeps 8
// links for an hour, 16 tokens until they are not used for three days, 4 open pages and 256
// connections that sent no token; a new one replaces the oldest, of tokens the one that was
// not used for longest. So a program without a token can slow the page down, and cannot shut it.
//
// All methods of [Page] may be called concurrently. Its goroutines have ended when
// [Page.Close] returns.
package page
