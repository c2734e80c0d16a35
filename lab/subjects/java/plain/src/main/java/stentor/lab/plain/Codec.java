package stentor.lab.plain;

import stentor.lab.Content;

/** How content becomes bytes, and bytes content. */
public interface Codec {
    String contentType();

    byte[] writeRequest(String op, Content content) throws Exception;

    Content readRequest(String op, byte[] bytes) throws Exception;

    byte[] writeAnswer(String op, Content content) throws Exception;

    Content readAnswer(String op, byte[] bytes) throws Exception;

    /** A codec that writes requests and answers alike. */
    interface Same extends Codec {
        byte[] write(Content content) throws Exception;

        Content read(byte[] bytes) throws Exception;

        @Override
        default byte[] writeRequest(String op, Content content) throws Exception {
            return write(content);
        }

        @Override
        default Content readRequest(String op, byte[] bytes) throws Exception {
            return read(bytes);
        }

        @Override
        default byte[] writeAnswer(String op, Content content) throws Exception {
            return write(content);
        }

        @Override
        default Content readAnswer(String op, byte[] bytes) throws Exception {
            return read(bytes);
        }
    }
}
