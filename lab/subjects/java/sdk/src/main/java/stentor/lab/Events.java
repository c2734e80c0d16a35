package stentor.lab;

/** Hears of a document: elements and the text in them. Whoever writes XML implements it; whoever reads XML calls it. */
public interface Events {
    void start(String name) throws Exception;

    void text(String text) throws Exception;

    void end() throws Exception;
}
