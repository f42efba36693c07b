// Package openaigo reads the streams of package providertest with OpenAI's Go library, and
// compares the result with the engine's. This shows that the scripted provider works with
// a real client. It is a module of its own, so that other packages do not need the library.
package openaigo
