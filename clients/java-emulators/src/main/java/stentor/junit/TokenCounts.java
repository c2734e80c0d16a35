package stentor.junit;

/**
 * The requests for one token.
 *
 * @param attempts the requests that were read, with any outcome
 * @param accepted the accepted ones
 * @param rejected the refused ones
 * @param validateOnly the accepted dry runs
 */
public record TokenCounts(int attempts, int accepted, int rejected, int validateOnly) {}
