// Package model speaks to model providers: OpenAI's Chat Completions and Responses,
// streaming, over net/http alone.
//
//	Request ──▶ Client.Stream ──▶ Event*  ──▶ Response or an error
//
// [Client.Stream] makes one attempt at a response, retries of refused requests included.
// What it returns is whole: a response that broke off is an error, so that half of it
// never runs. Whether to try again is the caller's choice, helped by [Retryable].
//
// A provider is not trusted to behave. The bytes of a response, of one event and of an
// error, and the number of tool calls are bounded; silence ends in an error after the
// provider's idle timeout.
package model
