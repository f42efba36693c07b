// Package browsertest drives the approvals page in a real browser, headless
// Chromium, end to end: an MCP client calls a codexserver, the engine asks, and
// the page in the browser answers.
//
//	go test .                        needs chromium, and fails without it
//	go test . -screenshots DIR       also writes pictures of the page there
//	go test . -update                makes the pictures of docs and the texts of testdata again
package browsertest
